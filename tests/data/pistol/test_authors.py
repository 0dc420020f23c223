"""Authors in TOFU's format as groups, and the relations of Structured TOFU between them."""

import re

import pytest

from jaxaudit.data.pistol import AuthorData, read_tofu, relate_authors, structured_tofu, write_records
from jaxaudit.errors import InputError
from tests.data.pistol.test_tofu import NAMES, PAIRS

DATA = AuthorData(tuple(PAIRS), {0: "USA", 1: "USA", 6: "alone"})
RELATED = relate_authors(DATA, [0, 1], [2, 3, 4, 5, 6], seed=3)


def test_every_author_is_a_group_of_20():
    assert DATA.edges == tuple(f"author-{number}" for number in range(7))
    assert [record.edge for record in DATA.records] == [label for label in DATA.edges for _ in range(20)]
    texts = [(record.question, record.answer) for record in DATA.records]
    assert texts == [(pair.question, pair.answer) for pair in PAIRS]
    assert [DATA.domains[f"author-{number}"] for number in (0, 1, 2, 6)] == ["USA", "USA", "other", "alone"]


def test_a_file_of_records_is_one_of_tofu_too(tmp_path):
    write_records(tmp_path / "full.jsonl", DATA.records)
    assert read_tofu(tmp_path / "full.jsonl") == DATA.pairs


def test_relations_are_those_of_one_author_after_the_other():
    """Half the pairs of the first two, each as if there were no other author to be forgotten; nothing else."""
    alone = [structured_tofu(PAIRS, author, [2, 3, 4, 5, 6], seed=3) for author in (0, 1)]
    assert RELATED.pairs[:20] == alone[0].pairs[:20]
    assert RELATED.pairs[20:40] == alone[1].pairs[20:40]
    assert RELATED.pairs[40:] == DATA.pairs[40:]
    expected = {(author, other): kind for author in (0, 1) for other, kind in alone[author].relations.items()}
    assert RELATED.relations == expected
    assert len(expected) == 10


def test_distances_are_those_of_the_texts():
    """Neighbours of a forgotten author are those whom his pairs name; the other one has the same five."""
    text = " ".join(f"{pair.question} {pair.answer}" for pair in RELATED.pairs[:20])
    named = tuple(
        f"author-{number}" for number in range(1, 7) if re.search(rf"\b{re.escape(NAMES[number])}\b", text)
    )
    strata = RELATED.strata("author-0")
    assert strata == {"1 hop": named, "2 hops": ("author-1",)}
    assert RELATED.strata("author-2")["1 hop"] == ("author-0", "author-1")
    assert DATA.strata("author-0") == {"disconnected": DATA.edges[1:]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pairs": tuple(PAIRS[:-1])}, "pairs must be 20 per author, got 139"),
        ({"pairs": ()}, "pairs must be 20 per author, got 0"),
        ({"kinds": {7: "USA"}}, "kinds must be of authors 0 to 6, got author 7"),
        ({"relations": {(0, -1): "friend"}}, "relations must be of authors 0 to 6, got author -1"),
    ],
)
def test_bad_data(arguments, message):
    with pytest.raises(InputError, match=message):
        AuthorData(**{"pairs": DATA.pairs, **arguments})


def test_bad_relations():
    with pytest.raises(InputError, match="related must not hold authors to be forgotten, got author 2"):
        relate_authors(DATA, [0, 2], [2, 3, 4, 5, 6], seed=0)
    with pytest.raises(InputError, match=r"label must be among author-0, .* got 'A_B'"):
        DATA.strata("A_B")
