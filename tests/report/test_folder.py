"""The report folder is written as a whole, and never over something else."""

import errno

import pytest

from jaxaudit.errors import InputError
from jaxaudit.report import folder as folder_module
from jaxaudit.report.document import read_json
from jaxaudit.report.folder import REPORT_FILES, check_folder, file_digest


def test_all_files_are_there_with_their_digests(saved):
    assert {path.name for path in saved.iterdir()} == REPORT_FILES
    digests = read_json(saved / "report.json")["sha256"]
    assert digests == {name: file_digest(saved / name) for name in REPORT_FILES - {"report.json"}}


def test_file_digest_is_sha256(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert file_digest(tmp_path / "file") == expected


def test_parents_are_made_and_an_empty_folder_is_used(report, tmp_path):
    (tmp_path / "empty").mkdir()
    for target in (tmp_path / "empty", tmp_path / "a" / "b"):
        assert report.save(target) == target
        assert (target / "report.html").is_file()
        assert [path.name for path in target.parent.iterdir() if path.name.startswith(".")] == []


def test_a_report_is_overwritten_only_on_request(report, tmp_path):
    (tmp_path / "report.md").write_text("old")
    with pytest.raises(InputError, match=r"is not empty; .* use --overwrite \(overwrite=True\)"):
        report.save(tmp_path)
    assert (tmp_path / "report.md").read_text() == "old"
    report.save(str(tmp_path), overwrite=True)
    assert (tmp_path / "report.md").read_text() != "old"


def test_a_folder_with_other_files_is_never_overwritten(report, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"thesis\.tex is not part of a report"):
        report.save(tmp_path, overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_file_in_the_way_is_an_input_error(report, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not a folder"):
        report.save(tmp_path / "file", overwrite=True)


def test_a_folder_that_cannot_be_written_is_called_by_its_own_name(tmp_path, monkeypatch):
    def refuse(dir):
        raise OSError(errno.EROFS, "Read-only file system", f"{dir}/tmp4h1k2")

    monkeypatch.setattr(folder_module.tempfile, "TemporaryDirectory", refuse)
    with pytest.raises(InputError) as caught:
        check_folder(tmp_path / "new")
    assert str(caught.value) == f"report folder {tmp_path / 'new'} cannot be written: Read-only file system"


def test_a_crash_leaves_the_old_report_and_nothing_else(report, tmp_path, monkeypatch):
    target = tmp_path / "report"
    target.mkdir()
    (target / "report.md").write_text("old")
    monkeypatch.setattr(folder_module, "render_html", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.save(target, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["report"]
    assert (target / "report.md").read_text() == "old"
