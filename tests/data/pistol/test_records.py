"""Files: written and read back, laid out as published, and refused with the place of the fault."""

import json

import pytest

from jaxaudit.data.pistol import chain, generate
from jaxaudit.data.pistol.dataset import Record
from jaxaudit.data.pistol.records import (
    check_out_file,
    read_records,
    read_texts,
    write_lines,
    write_records,
)
from jaxaudit.errors import InputError

RECORDS = generate(chain(3), seed=0).records


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_written_and_read_back(tmp_path, suffix):
    path = tmp_path / f"data.{suffix}"
    odd = Record("Où est\u2028«Ann»?", 'In "Köln".', "A_B")
    write_records(path, [*RECORDS, odd])
    assert read_records(path) == (*RECORDS, odd)
    assert list(tmp_path.iterdir()) == [path]


def test_layouts(tmp_path):
    """The published files are what ``json.dump(rows, file, indent=4)`` writes."""
    rows = [{"question": r.question, "answer": r.answer, "edge": r.edge} for r in RECORDS]
    write_records(tmp_path / "a.json", RECORDS)
    assert (tmp_path / "a.json").read_text() == json.dumps(rows, indent=4)
    write_records(tmp_path / "a.jsonl", RECORDS)
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == rows


def test_a_json_file_may_hold_lines_and_other_keys(tmp_path):
    path = tmp_path / "tofu.json"
    path.write_text(
        '{"question": "Who?", "answer": "Ann.", "more": 1}\n\n{"answer": "Bo.", "question": "And?"}\n'
    )
    assert read_texts(path, ("question", "answer")) == [("Who?", "Ann."), ("And?", "Bo.")]


def test_lines(tmp_path):
    write_lines(tmp_path / "lines.txt", ["No.", "Never."])
    assert (tmp_path / "lines.txt").read_bytes() == b"No.\nNever.\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b"[1, 2", "is not JSON"),
        ("a.jsonl", b'{"question": "Who?", "answer": "A.", "edge": "A_B"}\n{', "line 2 is not JSON"),
        ("a.json", b"[]", "holds no records"),
        ("a.jsonl", b"", "holds no records"),
        ("a.json", b'[{"question": "Who?", "answer": "A."}]', "record 1 lacks 'edge'; it has 'question'"),
        (
            "a.json",
            b'[{"question": "Who?", "answer": 3, "edge": "A_B"}]',
            "record 1: answer must be a text.*got 3",
        ),
        (
            "a.json",
            b'[{"question": " ", "answer": "A.", "edge": "A_B"}]',
            "record 1: question must be a text",
        ),
        ("a.json", b"[7]", "record 1 must be an object with question, answer, edge, got 7"),
        ("a.json", b"\xff\xfe", "is not text in UTF-8"),
        ("a.csv", b"", "data must be a .json or .jsonl file"),
    ],
)
def test_bad_files(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_records(path)


def test_no_such_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_records(tmp_path / "none.json")


def test_places_that_cannot_be_written(tmp_path):
    path = tmp_path / "a.json"
    write_records(path, RECORDS)
    with pytest.raises(InputError, match="already exists"):
        write_records(path, RECORDS[:1])
    write_records(path, RECORDS[:1], overwrite=True)
    assert read_records(path) == RECORDS[:1]
    with pytest.raises(InputError, match=r"folder .* does not exist"):
        check_out_file(tmp_path / "none" / "a.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        check_out_file(tmp_path / "folder.json", overwrite=True)
    with pytest.raises(InputError, match=r"out must be a \.json or \.jsonl file"):
        check_out_file(tmp_path / "a.txt")
