"""Candidate edges: who reads what, and what an attacker may see."""

import numpy as np
import pytest

from jaxaudit.data.pistol import generate, make_graph
from jaxaudit.errors import InputError
from jaxaudit.scored import AuditedRuns
from jaxaudit.signs import draw_order, enumerate_signs
from jaxaudit.study import Candidates, QuestionSet, draw_candidates


@pytest.fixture(scope="module")
def candidates(micro):
    """Of a chain of four edges, the first of which is retained: it shares a company with the first candidate only."""
    return Candidates(micro, ("1_2", "2_3", "3_4"))


def test_every_run_reads_the_retained_questions_and_its_own_half_in_one_order(candidates):
    signs = enumerate_signs(3)
    order = draw_order(0, candidates.questions.num_questions)
    members, forgotten = candidates.members(signs, order), candidates.forgotten(signs, order)
    pool = np.concatenate([candidates.retained_rows, candidates.rows.reshape(-1)])[order]
    for sign, read, forget in zip(signs, members, forgotten):
        own = candidates.rows[sign == 1].reshape(-1)
        assert read.tolist() == [row for row in pool if row in own or row in candidates.retained_rows]
        assert forget.tolist() == [row for row in pool if row in own]
    assert candidates.kept(order).tolist() == [row for row in pool if row in candidates.retained_rows]


def test_retraining_reads_retained_questions_only_in_as_many_places(candidates):
    order = draw_order(0, candidates.questions.num_questions)
    read = candidates.reference_members(order)
    assert read.shape == candidates.members(enumerate_signs(3), order)[0].shape
    kept = read[read != candidates.questions.num_questions]
    assert kept.tolist() == candidates.kept(order).tolist()


def test_parts_are_those_of_the_shared_answers(candidates):
    assert set(candidates.parts) == {"all", "exclusive", "shared"}
    assert candidates.shared.sum(axis=1).tolist() == [1, 0, 0]
    (row,) = candidates.rows[candidates.shared]
    assert candidates.questions.answers[row] in {
        candidates.questions.answers[kept] for kept in candidates.retained_rows
    }
    assert (candidates.parts["exclusive"] == ~candidates.shared).all()


def test_without_shared_answers_there_is_one_part(micro):
    """Contracts without a common entity share no address."""
    pairs = make_graph((f"{node}", f"{node + 1}", "sales") for node in (0, 2, 4))
    apart = Candidates(QuestionSet(generate(pairs, seed=0), micro.model), ("0_1", "2_3"))
    assert not apart.shared.any()
    assert set(apart.parts) == {"all"}
    assert apart.parts["all"].all()
    assert apart.matched() == {}


def test_a_shared_address_is_compared_with_the_other_one_of_the_same_edge(candidates):
    found = candidates.matched()
    assert (found["shared"] == candidates.shared).all()
    assert found["exclusive"].sum(axis=1).tolist() == [1, 0, 0]
    data, answers = candidates.questions.data, candidates.questions.answers
    ((shared,), (exclusive,)) = (candidates.rows[found[kind]] for kind in ("shared", "exclusive"))
    assert (answers[shared], answers[exclusive]) == tuple(f"{data.entities[node].address}." for node in "12")


def test_of_edges_with_two_shared_addresses_nothing_is_compared(micro):
    """The middle one of three: both of its companies have a retained contract."""
    middle = Candidates(micro, ("1_2", "3_4"))
    assert middle.shared.sum(axis=1).tolist() == [2, 1]
    assert [flags.sum(axis=1).tolist() for flags in middle.matched().values()] == [[0, 1], [0, 1]]


def test_an_attacker_sees_its_part_only(candidates):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(2, 3, 20))
    runs = AuditedRuns([[1, -1, -1], [-1, 1, -1]], scores, run_ids=[4, 5], failed=[False, True])
    seen = candidates.restrict(runs, "shared")
    assert seen.weights.sum(axis=1).tolist() == [1, 1, 1]
    assert (seen.scores[:, 0][:, candidates.shared[0]] == scores[:, 0][:, candidates.shared[0]]).all()
    assert (seen.scores[:, 1:] == 0).all()
    assert (seen.run_ids.tolist(), seen.failed.tolist()) == ([4, 5], [False, True])
    assert (candidates.restrict(runs, "all").scores == scores).all()
    with pytest.raises(InputError, match="part must be one of all, exclusive, shared, got 'none'"):
        candidates.restrict(runs, "none")


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (("1_2", "9_9"), "edge must be among"),
        (("1_2",), "at least 2 different ones"),
        (("2_3", "1_2"), "in the order of the data"),
        (("1_2", "1_2"), "at least 2 different ones"),
        (("0_1", "1_2", "2_3", "3_4"), "at least one edge to retain"),
    ],
)
def test_wrong_candidates_are_named(micro, edges, message):
    with pytest.raises(InputError, match=message):
        Candidates(micro, edges)


def test_candidates_are_drawn_by_seed(micro):
    drawn = draw_candidates(micro.data, 2, seed=1)
    assert drawn == draw_candidates(micro.data, 2, seed=1)
    assert len({draw_candidates(micro.data, 2, seed=seed) for seed in range(9)}) > 1
    with pytest.raises(InputError, match="num_groups"):
        draw_candidates(micro.data, 4, seed=1)
