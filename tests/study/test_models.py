"""Models are made once, kept one by one, and found again by another process; made-up models, so nothing is trained."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import Adapted, LoraSpec, merge
from jaxaudit.study import Case, QuestionSet, Study, Training, study_fingerprint
from jaxaudit.study.models import MOVED
from tests.llm.reference import random_adapters

ALL = [
    Case("base"),
    Case("before", 1),
    Case("retrained", 1, "0_1"),
    Case("retrained", 1, "1_2"),
    Case("unlearned", 1, "0_1", "npo", 1e-3),
    Case("unlearned", 1, "1_2", "npo", 1e-3),
    Case("unlearned", 1, "1_2", "npo", 1e-2),
    Case("unlearned", 2, "0_1", "kl", 1e-3),
    Case("tried", 0, "0_1", "kl", 1e-3),
]


def test_every_model_is_made_once_in_chunks_of_one_size(micro, micro_spec, fakes, tmp_path):
    study = Study(micro, micro_spec, store=tmp_path)
    study.ensure([*ALL, *ALL])
    assert study.missing(ALL) == []
    assert {len(part) for part in fakes.trained} == {2}
    trained = [training for part in fakes.trained for training in dict.fromkeys(part)]
    assert sorted(map(str, trained)) == sorted(
        map(
            str,
            [
                *(Training(None, seed) for seed in (0, 1, 2)),
                Training("0_1", 1),
                Training("1_2", 1),
            ],
        )
    )
    unlearned = [(method, one) for method, part in fakes.unlearned for one in dict.fromkeys(part)]
    assert len(unlearned) == len(set(unlearned)) == 5
    study.ensure(ALL)  # nothing is left to do
    assert len(fakes.trained) == 4  # one chunk for each of seeds 0 and 2, two for seed 1


def test_another_study_finds_what_is_on_disk(micro, micro_spec, fakes, tmp_path):
    Study(micro, micro_spec, store=tmp_path).ensure(ALL)
    fakes.trained.clear()
    again = Study(micro, replace(micro_spec, seeds=(1,), rates=(1e-2,)), store=tmp_path)
    assert again.missing(ALL) == []
    assert again.result(ALL[-2])["recall"].shape == (80,)
    assert "recall" not in again.result(ALL[-1])
    assert fakes.trained == []
    other = Study(micro, replace(micro_spec, epochs=2), store=tmp_path)
    assert other.missing(ALL) == ALL


def test_a_killed_study_goes_on(micro, micro_spec, fakes, tmp_path, monkeypatch):
    calls = []

    def killed(*args, **options):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return fakes.unlearn(*args, **options)

    monkeypatch.setattr("jaxaudit.study.models.unlearn", killed)
    requests = [Case("unlearned", 1, edge, "npo", rate) for edge in ("0_1", "1_2") for rate in (1e-3, 1e-2)]
    with pytest.raises(KeyboardInterrupt):
        Study(micro, micro_spec, store=tmp_path).ensure(requests)
    rest = Study(micro, micro_spec, store=tmp_path).missing(requests)
    assert rest == requests[2:]
    fakes.trained.clear()
    monkeypatch.setattr("jaxaudit.study.models.unlearn", fakes.unlearn)
    Study(micro, micro_spec, store=tmp_path).ensure(requests)
    assert fakes.trained == []  # the fine-tuned model was kept
    assert [len(part) for _, part in fakes.unlearned] == [2, 2]


def test_the_fingerprint_follows_data_model_and_settings(micro, micro_spec):
    known = study_fingerprint(micro, micro_spec)
    assert study_fingerprint(micro, replace(micro_spec, chunk=7)) == known
    assert study_fingerprint(micro, replace(micro_spec, batch_size=5)) != known
    assert study_fingerprint(micro, replace(micro_spec, free_running=True)) == known
    fewer = replace(micro.data, contracts=micro.data.contracts[:3])
    assert study_fingerprint(QuestionSet(fewer, micro.model), micro_spec) != known


class Shifted:
    """Another numbering of the same tokens."""

    def __init__(self, inner):
        self.inner, self.eos, self.pad, self.bos = inner, inner.eos, inner.pad, inner.bos
        self.vocabulary_size = inner.vocabulary_size

    def encode(self, text):
        return [2 + (token - 1) % (self.vocabulary_size - 2) for token in self.inner.encode(text)]

    def decode(self, ids):
        return self.inner.decode([2 + (token - 3) % (self.vocabulary_size - 2) for token in ids])


class OtherEnd(Shifted):
    """The same numbering, but answers end otherwise."""

    def __init__(self, inner):
        super().__init__(inner)
        self.eos = inner.pad

    def encode(self, text):
        return self.inner.encode(text)

    def decode(self, ids):
        return self.inner.decode(ids)


@pytest.mark.parametrize("kind", [Shifted, OtherEnd])
def test_the_fingerprint_follows_the_tokenizer_through_the_data(micro, micro_spec, kind):
    other = replace(micro.model, tokenizer=kind(micro.model.tokenizer))
    assert other.fingerprint == micro.model.fingerprint
    assert study_fingerprint(QuestionSet(micro.data, other), micro_spec) != study_fingerprint(
        micro, micro_spec
    )


def test_ranks_along_own_answers_are_made_when_they_are_asked_for(micro, micro_spec, fakes, tmp_path):
    case, tried = Case("retrained", 1, "0_1"), ALL[-1]
    Study(micro, micro_spec, store=tmp_path).ensure([case, tried])
    ranked = Study(micro, replace(micro_spec, free_running=True), store=tmp_path)
    assert ranked.missing([case, tried]) == [case]
    assert "free top hits" in ranked.result(case)
    assert Study(micro, micro_spec, store=tmp_path).missing([case]) == []


def test_what_unlearning_changed_is_kept(micro, micro_spec, fakes):
    study = Study(micro, micro_spec)
    assert float(study.result(Case("unlearned", 1, "0_1", "npo", 1e-3))[MOVED]) == 1.0
    assert MOVED not in study.result(Case("retrained", 1, "0_1"))


def test_edges_with_other_numbers_of_questions_are_unlearned_apart(micro, micro_spec, fakes, monkeypatch):
    rows_of = micro.rows_of
    monkeypatch.setattr(
        QuestionSet, "rows_of", lambda self, edge: rows_of(edge)[:10] if edge == "1_2" else rows_of(edge)
    )
    cases = [Case("unlearned", 1, edge, "npo", 1e-3) for edge in ("0_1", "1_2", "2_3")]
    Study(micro, micro_spec).ensure(cases)
    assert [{one.edge for one in part} for _, part in fakes.unlearned] == [{"0_1", "2_3"}, {"1_2"}]


def test_unknown_edges_and_methods_are_named(micro, micro_spec, fakes):
    with pytest.raises(InputError, match="edge must be among"):
        Study(micro, micro_spec).result(Case("retrained", 1, "A_B"))
    with pytest.raises(InputError, match=r"method must be one of gradient_ascent, .*got 'magic'"):
        Study(micro, micro_spec).result(Case("unlearned", 1, "0_1", "magic", 1.0))


def test_of_a_model_with_adapters_these_alone_are_kept(micro, micro_spec, fakes, tmp_path, monkeypatch):
    """And merged when the model is to forget; two models of one seed are two rows of one tree."""
    lora = LoraSpec(rank=1, alpha=2.0, targets=("q", "down"), dropout=0.0)
    draws = [random_adapters(micro.model.spec, lora, seed) for seed in (0, 1)]

    def trained(questions, spec, trainings, **options):
        adapters = [draws[training.edge is None] for training in trainings]
        return Adapted(questions.base, jax.tree.map(lambda *leaves: jnp.stack(leaves), *adapters))

    monkeypatch.setattr("jaxaudit.study.models.fine_tune", trained)
    study = Study(micro, replace(micro_spec, fine_tuning_lora=lora), store=tmp_path)
    study.ensure([Case("retrained", 1, "0_1"), Case("before", 1)])
    found, expected = study.fine_tuned(1), merge(micro.base, draws[1], lora)
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    (file,) = tmp_path.rglob("adapters/seed-1.npz")
    stored = np.load(file)
    assert sum(stored[name].size for name in stored.files) == sum(
        leaf.size for leaf in jax.tree.leaves(draws[1])
    )
    again = Study(micro, replace(micro_spec, fine_tuning_lora=lora), store=tmp_path)
    jax.tree.map(np.testing.assert_array_equal, again.fine_tuned(1), expected)
