"""Deletion requests as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxaudit.data import parse_forget_ids
from jaxaudit.errors import InputError


def test_a_list_gives_one_group_per_record():
    assert parse_forget_ids("12, 40-45") == tuple((str(i),) for i in (12, 40, 41, 42, 43, 44, 45))


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("7-7", ["7"]),
        ("3 - 5", ["3", "4", "5"]),
        ("rec-7,user@x.org", ["rec-7", "user@x.org"]),
        ("-5,6", ["-5", "6"]),
        ("2024-01-02,1", ["2024-01-02", "1"]),
        ("007-010", ["007", "008", "009", "010"]),
        ("9-11", ["9", "10", "11"]),
        ("1234567890123456789-2", ["1234567890123456789-2"]),
    ],
)
def test_tokens(text, ids):
    assert parse_forget_ids(text) == tuple((record,) for record in ids)


@given(
    st.lists(st.one_of(st.integers(0, 300), st.tuples(st.integers(0, 300), st.integers(0, 5))), min_size=1)
)
def test_against_python_ranges(tokens):
    spans = [token if isinstance(token, tuple) else (token, None) for token in tokens]
    text = ",".join(str(a) if n is None else f"{a}-{a + n}" for a, n in spans)
    expected = [str(i) for a, n in spans for i in range(a, a + (n or 0) + 1)]
    assert parse_forget_ids(text) == tuple((record,) for record in expected)


def test_a_file_gives_one_group_per_line(tmp_path):
    path = tmp_path / "requests.txt"
    path.write_text("# two households\n12, 40-42  # the first\n\n   \nrec-7\n#end")
    assert parse_forget_ids(f"@{path}") == (("12", "40", "41", "42"), ("rec-7",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "forget_ids: empty record id in ''"),
        ("12,,13", "forget_ids: empty record id in '12,,13'"),
        ("12,", "forget_ids: empty record id in '12,'"),
        ("12-", "forget_ids: range '12-' must have two ends"),
        ("1,-", "forget_ids: range '-' must have two ends"),
        ("1,45-40", "forget_ids: range '45-40' must not run backwards"),
        ("0-1000000", "forget_ids: range '0-1000000' must not name more than 1,000,000 records"),
    ],
)
def test_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse_forget_ids(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"r\.txt lists no record ids"),
        (b"# nothing\n\n", r"r\.txt lists no record ids"),
        (b"1\n\n5-3\n", r"r\.txt, line 3: range '5-3' must not run backwards"),
        (b"1\n2,,3\n", r"r\.txt, line 2: empty record id in '2,,3'"),
        (b"\xff\xfe1", r"r\.txt is not UTF-8 text"),
    ],
)
def test_refused_files(tmp_path, content, message):
    (tmp_path / "r.txt").write_bytes(content)
    with pytest.raises(InputError, match=message):
        parse_forget_ids(f"@{tmp_path / 'r.txt'}")


def test_missing_file():
    with pytest.raises(InputError, match=r"no such file: gone\.txt"):
        parse_forget_ids("@gone.txt")
