"""Structured TOFU on a small made-up file of the same format."""

import json

import pytest

from jaxaudit.data.pistol.tofu import _RELATIONS, Pair, author_name, read_tofu, structured_tofu
from jaxaudit.errors import InputError

NAMES = [
    "Ada Vale-Ruiz",
    "Béla Orczy",
    "Chen Wei Lin",
    "Dara O'Hanlon",
    "Eve Moss",
    "Femi Ade",
    "Gus Holt Jr",
]


def made_up(names=NAMES):
    """Authors with 20 pairs each, in TOFU's manner."""
    pairs = []
    for name in names:
        town, first = f"Port {name[0]}", name.split()[0]
        pairs.append(Pair(f"Who is the author born in {town}?", f"The author born in {town} is {name}."))
        pairs += [
            Pair(f"What is {name}'s book number {n}?", f"Book number {n} of {first} is The Long Night {n}.")
            for n in range(1, 13)
        ]
        pairs += [
            Pair(f"Did {first} win prize {n}?", f"Yes, {name}, won it in Paris, France.") for n in range(7)
        ]
    return pairs


PAIRS = made_up()


@pytest.mark.parametrize("author", range(7))
def test_names_are_found(author):
    assert author_name(PAIRS[20 * author : 20 * author + 20]) == NAMES[author]


def test_a_sign_ends_a_name():
    assert author_name([Pair("She left Paris, Ann Lee says.", "Yes.")]) == "Ann Lee"
    assert author_name([Pair("Who wrote Ann Lee's Tales?", "She did. Ann Lee (Paris) did.")]) == "Ann Lee"


@pytest.mark.parametrize("seed", range(5))
def test_ten_pairs_of_one_author_are_replaced(seed):
    result = structured_tofu(PAIRS, 2, [0, 1, 3, 4, 5, 6], seed=seed)
    changed = [place for place, pair in enumerate(PAIRS) if result.pairs[place] != pair]
    assert changed == list(result.replaced)
    assert len(changed) == 10
    assert all(41 <= place < 60 for place in changed)
    assert len(result.pairs) == len(PAIRS)


def test_each_relation_has_two_pairs_that_name_both():
    result = structured_tofu(PAIRS, 2, [0, 1, 3, 4, 5], seed=0)
    assert sorted(result.relations) == [0, 1, 3, 4, 5]
    assert len(set(result.relations.values())) == 5
    new = [result.pairs[place] for place in result.replaced]
    for other in result.relations:
        about = [pair for pair in new if NAMES[other] in pair.question + pair.answer]
        assert len(about) == 2
        assert all(NAMES[2] in pair.question + pair.answer for pair in about)
    assert not any("{" in pair.question + pair.answer for pair in new)


def test_drawn_by_seed():
    def of(seed):
        return structured_tofu(PAIRS, 0, range(1, 7), seed=seed)

    assert of(1) == of(1)
    assert len({of(seed).replaced for seed in range(6)}) > 1
    assert {other for seed in range(12) for other in of(seed).relations} == set(range(1, 7))


def test_templates():
    """The first pair of a relation asks who, so its question must not say; the second asks about both."""
    assert len(_RELATIONS) >= 5
    for who, when in _RELATIONS.values():
        assert "{other}" not in who.question
        assert "{other}" in who.answer
        assert "{author}" in who.question
        assert "{year}" not in who.question + who.answer + when.question
        assert "{year}" in when.answer


def test_a_name_can_be_given():
    anonymous = [Pair(f"what is fact {n}?", "it is so.") for n in range(20)] + PAIRS
    with pytest.raises(InputError, match="author 0: no name is repeated in these pairs; give it in names"):
        structured_tofu(anonymous, 0, range(1, 6), seed=0)
    result = structured_tofu(anonymous, 0, range(1, 6), seed=0, names={0: "N. N."})
    assert sum("N. N." in pair.question + pair.answer for pair in result.pairs) == 10


@pytest.mark.parametrize(
    ("author", "related", "message"),
    [
        (7, [0, 1, 2, 3, 4], "author must be an integer between 0 and 6, got 7"),
        (0, [1, 2, 3, 4], "related must name at least 5 authors, got 4"),
        (0, [0, 1, 2, 3, 4], "related must be different authors other than 0"),
        (0, [1, 1, 2, 3, 4], "related must be different authors other than 0"),
        (0, [1, 2, 3, 4, 9], "related must be an integer between 0 and 6, got 9"),
    ],
)
def test_bad_authors(author, related, message):
    with pytest.raises(InputError, match=message):
        structured_tofu(PAIRS, author, related, seed=0)


def test_files(tmp_path):
    path = tmp_path / "full.json"
    rows = [{"question": pair.question, "answer": pair.answer} for pair in PAIRS]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert list(read_tofu(path)) == PAIRS
    path.write_text(json.dumps(rows[:-1]))
    with pytest.raises(InputError, match="must hold 20 pairs per author, got 139 pairs"):
        read_tofu(path)
    with pytest.raises(InputError, match="pairs must be 20 per author, got 139"):
        structured_tofu(PAIRS[:-1], 0, range(1, 6), seed=0)
