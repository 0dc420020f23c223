import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxaudit.data.shakespeare.roles import draw_roles, find_roles, split_roles, text_of
from jaxaudit.data.shakespeare.speech import Speech
from jaxaudit.errors import InputError


def said(play, role, count, text="Ay, my lord."):
    return [Speech(play, role, f"{text} {number}") for number in range(count)]


def roles_of(*counts):
    return find_roles(
        [speech for number, count in enumerate(counts) for speech in said("P", f"R{number}", count)]
    )


def test_roles_are_one_per_play_unless_merged():
    speeches = said("A", "PAGE", 2) + said("B", "PAGE", 3) + said("B", "LORD", 1)
    assert [(role.play, role.name, len(role.speeches)) for role in find_roles(speeches)] == [
        ("A", "PAGE", 2),
        ("B", "PAGE", 3),
    ]
    (merged,) = find_roles(speeches, merge_labels=True)
    assert (merged.title, merged.speeches) == ("PAGE", tuple(speeches[:5]))


@given(st.integers(2, 60))
def test_time_split_is_80_10_10_in_order_and_loses_nothing(count):
    (role,) = roles_of(count)
    parts = role.train, role.validation, role.test
    assert sum(parts, ()) == role.speeches
    assert [len(part) for part in parts[:2]] == [int(0.8 * count), int(0.1 * count)]
    assert role.train
    assert role.test


def test_draws_are_without_replacement_and_repeatable():
    roles = roles_of(*[2] * 30)
    drawn = [draw_roles(np.random.default_rng(seed), roles, 20) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 20


@pytest.mark.parametrize(
    ("counts", "num_roles", "message"),
    [
        ((), 2, "at least 2 roles with 2 speeches or more, got 0"),
        ((5, 1), 2, "at least 2 roles with 2 speeches or more, got 1"),
        ((5, 5), 3, "num_roles must be an integer between 2 and 2, got 3"),
        ((5, 5), 1, "num_roles must be an integer between 2 and 2, got 1"),
    ],
)
def test_too_few_roles(counts, num_roles, message):
    with pytest.raises(InputError, match=message):
        draw_roles(np.random.default_rng(0), roles_of(*counts), num_roles)


@given(st.lists(st.integers(2, 40), min_size=5, max_size=40), st.floats(0.05, 0.6))
def test_forget_roles_fill_their_share_and_every_role_is_on_one_side(counts, share):
    roles = roles_of(*counts)
    sizes = {role: len(text_of(role.train)) for role in roles}
    room = int(share * sum(sizes.values()))
    if min(sizes.values()) > room:
        with pytest.raises(InputError, match="must leave a role to forget"):
            split_roles(np.random.default_rng(0), roles, share)
        return
    retain, forget = split_roles(np.random.default_rng(0), roles, share)
    assert sorted(retain + forget) == sorted(roles)
    taken = sum(sizes[role] for role in forget)
    # No role that was left out would have fitted at the end.
    assert taken <= room < taken + min(sizes[role] for role in retain)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_share_must_be_a_share(share):
    with pytest.raises(InputError, match="forget_share must be above 0 and below 1, got"):
        split_roles(np.random.default_rng(0), roles_of(2, 2), share)
