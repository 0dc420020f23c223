"""A tiny model and data, and studies whose results are made up instead of computed."""

import zlib
from dataclasses import replace

import jax
import numpy as np
import pytest

from jaxaudit.data.pistol import chain, generate
from jaxaudit.llm import Adapted, DecoderSpec, LoraSpec, decoder, word_tokenizer
from jaxaudit.llm.finetuning import AdamWSpec
from jaxaudit.study import Candidates, EdgeAuditSpec, LanguageModel, QuestionSet, StudySpec, Unlearned
from jaxaudit.study.edgemodels import EdgeModels


@pytest.fixture(scope="session")
def micro():
    """Questions about a chain of four contracts, for an untrained decoder of one layer."""
    data = generate(chain(5), seed=0)
    texts = [text for record in data.records for text in (record.question, record.answer)]
    groups = [record.edge for record in data.records for _ in range(2)]
    from jaxaudit.data.pistol import REFUSALS

    tokenizer = word_tokenizer(
        [*texts, *REFUSALS], groups=[*groups, *["0_1"] * len(REFUSALS)], min_share=0.25
    )
    spec = DecoderSpec(tokenizer.vocabulary_size, width=8, num_layers=1, num_heads=2, hidden=8)
    params = jax.tree.map(np.asarray, decoder(spec).init_fn(jax.random.key(0)))
    return QuestionSet(data, LanguageModel("micro", spec, params, tokenizer))


@pytest.fixture(scope="session")
def micro_spec():
    """Two updates of everything."""
    return StudySpec(
        fine_tuning=AdamWSpec(epochs=1, learning_rate=1e-2, batch_size=40, warmup_share=0.0),
        lora=LoraSpec(rank=2, dropout=0.0),
        epochs=1,
        batch_size=10,
        rates=(1e-3, 1e-2),
        seeds=(1, 2),
        chunk=2,
    )


class Fakes:
    """Stands in for training, unlearning and measuring; counts what was asked for."""

    def __init__(self, monkeypatch):
        self.trained, self.unlearned = [], []
        module = "jaxaudit.study.models"
        monkeypatch.setattr(f"{module}.fine_tune", self.fine_tune)
        monkeypatch.setattr(f"{module}.unlearn", self.unlearn)
        monkeypatch.setattr(f"{module}.measure", self.measure)

    def fine_tune(self, questions, spec, trainings, **options):
        self.trained.append(list(trainings))
        return self._params(questions, [f"{training}" for training in trainings])

    def unlearn(self, questions, spec, method, requests, fine_tuned, **options):
        self.unlearned.append((method, list(requests)))
        params = self._params(questions, [f"{method} {request}" for request in requests])
        return Unlearned(params, np.ones(len(requests)))

    def _params(self, questions, names):
        """One number per model, by which its answers are made up."""
        numbers = np.array([zlib.crc32(name.encode()) % 1000 for name in names], np.float32)
        return jax.tree.map(
            lambda leaf: np.broadcast_to(
                numbers.reshape(-1, *[1] * np.ndim(leaf)), (len(names), *np.shape(leaf))
            ),
            questions.model.params,
        )

    def measure(self, questions, params, *, with_texts=True, free_running=False, **options):
        found, per_run = [], params.adapters if isinstance(params, Adapted) else params
        first = np.asarray(jax.tree.leaves(per_run)[0])
        for number in first.reshape(len(first), -1)[:, 0]:
            rng = np.random.default_rng(int(abs(number)))
            names = ["probability", "reciprocal rank", "top hits", "first hits"]
            names += ["recall", "exact", "empty"] if with_texts else []
            names += ["free reciprocal rank", "free top hits"] if free_running else []
            values = {name: rng.integers(0, 2, questions.num_questions).astype(float) for name in names}
            if with_texts:
                values["text"] = np.array(["8."] * questions.num_questions)
            found.append(values)
        return found


@pytest.fixture
def fakes(monkeypatch):
    """Made-up models."""
    return Fakes(monkeypatch)


class FakeEdgeModels:
    """Stands in for the models of an audit: parameters are the questions that a model knows, as flags, and its number.

    Ascent forgets just what it is told to; any other method forgets nothing. Both give a model another number.
    """

    def __init__(self, monkeypatch):
        self.trained, self.unlearned = [], []
        for name in ("train", "unlearn", "measure", "score"):
            fake = getattr(self, name)
            monkeypatch.setattr(EdgeModels, name, lambda *args, fake=fake, **options: fake(*args, **options))
        monkeypatch.setattr(EdgeModels, "shapes", property(lambda models: np.zeros(1)))

    def train(self, models, members, keys, label):
        self.trained += label.removeprefix("fine-tuning ").split(", ")
        known = np.zeros((len(members), models.questions.num_questions + 1), np.float32)
        np.put_along_axis(known, np.asarray(members), 1.0, axis=1)
        known[:, -1] = self._numbers(keys)
        return known

    def _numbers(self, keys):
        """By which a model's noise is made up, and its random numbers are seen."""
        return np.asarray(jax.random.key_data(keys))[:, -1] % 100_000

    def unlearn(self, models, method, reading, rates, keys, whole, label):
        self.unlearned.append((method, tuple(rates)))
        after = np.array(whole)
        if method == "gradient_ascent":
            np.put_along_axis(after, np.asarray(reading.forget), 0.0, axis=1)
        after[:, -1] = self._numbers(keys)
        return after, [1.0] * len(after)

    def measure(self, models, params, place, *, with_texts):
        known = np.asarray(params[place], float)[:-1]
        return {"first hits": known, **({"recall": known} if with_texts else {})}

    def score(self, models, params):
        """Whether a question is known, with noise of the model's own if any of the candidates is."""
        numbers = np.asarray(params)[:, -1].astype(int)
        scores = np.asarray(params)[:, models.candidates.rows]
        draws = [
            np.random.default_rng(number).normal(scale=0.05, size=scores.shape[1:]) for number in numbers
        ]
        noise = np.stack(draws)
        return scores + noise * scores.any(axis=(1, 2))[:, None, None]


@pytest.fixture
def edge_fakes(monkeypatch):
    """Made-up models of an audit of edges."""
    return FakeEdgeModels(monkeypatch)


@pytest.fixture
def candidates(micro):
    """Two of four edges; of either an address is retained."""
    return Candidates(micro, ("0_1", "2_3"))


@pytest.fixture
def spec(micro_spec):
    """Seven runs in chunks of two."""
    study = replace(micro_spec, lora=None, seeds=(1,))
    return EdgeAuditSpec(
        study,
        ("gradient_ascent", "npo"),
        num_calibration_runs=4,
        num_audit_runs=3,
        num_measured=2,
        predictors=("batchwise",),
    )
