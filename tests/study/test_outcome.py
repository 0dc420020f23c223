"""Outcomes against sums over single answers, written out; on made-up results."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from jaxaudit.data.pistol import guessing_floor
from jaxaudit.llm import AdamWSpec, DecoderSpec, LoraSpec, decoder
from jaxaudit.metrics import rouge1_recall
from jaxaudit.study import (
    Case,
    QuestionSet,
    Study,
    StudySpec,
    guessing_floors,
    outcome,
    outcome_cases,
    recall_table,
)

EDGES = ("0_1", "2_3")


@pytest.fixture
def study(micro, micro_spec, fakes):
    study = Study(micro, micro_spec)
    study.ensure(outcome_cases(study, EDGES, {"npo": 1e-3}))
    return study


def test_means_and_scores_are_those_of_the_answers(study):
    found = outcome(study, EDGES, "npo", 1e-3)
    forget, retain, floor, exclusive = [], [], [], []
    for seed in (1, 2):
        for edge in EDGES:
            result = study.result(Case("unlearned", seed, edge, "npo", 1e-3))
            retrained = study.result(Case("retrained", seed, edge))
            shared = study.questions.shared(edge)
            for number, record in enumerate(study.data.records):
                if record.edge == edge:
                    forget.append(result["recall"][number])
                    floor.append(retrained["recall"][number])
                    if not shared[number]:
                        exclusive.append((edge, seed, result["recall"][number]))
                else:
                    retain.append(result["recall"][number])
    assert found.forget.shape == (4, 20)
    assert found.retain.shape == (4, 60)
    assert found.mean("forget") == pytest.approx(np.mean(forget))
    assert found.mean("retain") == pytest.approx(np.mean(retain))
    score = 100 * np.sqrt(np.mean(forget) ** 2 + (1 - np.mean(retain)) ** 2)
    assert found.deviation.score == pytest.approx(score)
    assert found.score.estimate == pytest.approx(score)
    assert found.score.low <= score <= found.score.high
    assert found.excess.estimate == pytest.approx(found.deviation.excess)
    assert found.retrained_forget.mean() == pytest.approx(np.mean(floor))
    per_row = [
        np.mean([value for edge, seed, value in exclusive if (edge, seed) == pair])
        for pair in (("0_1", 1), ("2_3", 1), ("0_1", 2), ("2_3", 2))
    ]
    np.testing.assert_allclose(found.parts["exclusive"]["recall"], per_row)
    assert found.spread("exclusive") == pytest.approx(np.std(per_row, ddof=1))


def test_a_part_that_only_some_edges_have_counts_for_those_only(study):
    found = outcome(study, EDGES, "npo", 1e-3)
    assert len(found.parts["3 hops"]["recall"]) == 2  # 0_1 has an edge so far away, 2_3 does not
    assert found.mean("disconnected") is None


def test_retraining_beside_itself_is_at_distance_0(study):
    found = outcome(study, EDGES, "retrained")
    assert found.deviation.distance == found.distance.low == found.distance.high == 0
    first, second = (
        np.array([one.forget[rows].mean(), one.retain[rows].mean()])
        for one, rows in ((found, slice(0, 2)), (found, slice(2, 4)))
    )
    assert found.distance_between_seeds == pytest.approx(100 * np.hypot(*(first - second)))
    assert found.distance_between_seeds > 0
    assert found.excess.low == found.excess.high == 0
    np.testing.assert_array_equal(found.forget, recall_table(study, EDGES, "retrained", 0.0, "forget"))


def test_a_method_is_compared_with_retrained_models_of_the_other_seeds(study):
    found = outcome(study, EDGES, "npo", 1e-3)
    mine = [(found.forget[rows].mean(), found.retain[rows].mean()) for rows in (slice(0, 2), slice(2, 4))]
    theirs = [
        (found.retrained_forget[rows].mean(), found.retrained_retain[rows].mean())
        for rows in (slice(2, 4), slice(0, 2))
    ]
    distances = [100 * np.hypot(a[0] - b[0], a[1] - b[1]) for a, b in zip(mine, theirs)]
    assert found.distance_between_seeds == pytest.approx(np.mean(distances))
    assert found.distance.estimate == pytest.approx(found.deviation.distance)
    assert found.distance.low <= found.distance.estimate <= found.distance.high
    assert replace(found, seeds=(1,)).distance_between_seeds is None


def test_runs_that_did_not_move_or_diverged_are_counted(study):
    found = replace(outcome(study, EDGES, "npo", 1e-3), moved=(0.0, 1.0, float("nan"), 0.0))
    assert (found.num_untouched, found.num_diverged) == (2, 1)
    assert found.document()["moved"] == [0.0, 1.0, "not finite", 0.0]
    assert outcome(study, EDGES, "before").moved == ()


def test_the_document_is_plain_json(study):
    document = json.loads(json.dumps(outcome(study, EDGES, "before").document(), allow_nan=False))
    assert document["edges"] == list(EDGES)
    assert len(document["parts"]["forget"]["recall"]) == 4


def test_empty_answers_to_forget_questions_are_counted(study):
    found = outcome(study, ("0_1",), "npo", 1e-3)
    own = study.questions.of_edges(["0_1"])
    expected = sum(
        study.result(Case("unlearned", seed, "0_1", "npo", 1e-3))["empty"][own].sum() for seed in (1, 2)
    )
    assert found.num_empty == expected > 0


def test_the_guessers_floor_is_that_of_the_data(study):
    expected = np.mean(guessing_floor(study.data, ["0_1"], lambda truth, guess: rouge1_recall(guess, truth)))
    assert guessing_floors(study, ["0_1"]) == pytest.approx(expected)
    assert expected > 0.1


@pytest.mark.slow
def test_a_small_model_remembers_and_forgets_and_retraining_never_knew(micro):
    """Trained in earnest: what is remembered is exact, what was left out is guessed at best, idk forgets."""
    spec = DecoderSpec(micro.model.spec.vocabulary_size, width=48, num_layers=2, num_heads=4, hidden=96)
    params = jax.tree.map(np.asarray, decoder(spec).init_fn(jax.random.key(1)))
    questions = QuestionSet(micro.data, replace(micro.model, spec=spec, params=params))
    settings = StudySpec(
        fine_tuning=AdamWSpec(epochs=80, learning_rate=6e-3, decay="cosine", warmup_share=0.05),
        lora=LoraSpec(rank=4, dropout=0.0),
        seeds=(1,),
    )
    study = Study(questions, settings)
    before, retrained, forgot = (
        outcome(study, ["1_2"], method, 3e-3) for method in ("before", "retrained", "idk")
    )
    assert before.mean("forget") > 0.97
    assert before.mean("retain") > 0.97
    assert retrained.mean("retain") > 0.97
    assert 0.05 < retrained.mean("exclusive") < 0.6
    assert forgot.mean("exclusive") < 0.5
    assert forgot.mean("retain") > 0.7
    for case in (Case("before", 1), Case("retrained", 1, "1_2"), Case("unlearned", 1, "1_2", "idk", 3e-3)):
        result = study.result(case)
        # Greedy generation goes along the true answer for as long as every true token comes first.
        assert ((result["first hits"] == 1) == (result["exact"] == 1)).all()
        assert (result["probability"] <= 1).all()
    assert 0 < study.result(Case("retrained", 1, "1_2"))["exact"].mean() < 1
