"""What the commands share."""

import json

import pytest

from jaxaudit.cli.common import busy, check_out, show
from jaxaudit.errors import InputError


def test_json_is_strict(capsys):
    show("text", {"epsilon": 1.5}, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"epsilon": 1.5}
    with pytest.raises(ValueError, match="not JSON compliant"):
        show("text", {"epsilon": float("nan")}, as_json=True)
    show("text", {}, as_json=False)
    assert capsys.readouterr().out == "text\n"


def test_progress_can_be_silenced(capsys):
    with busy("attack", quiet=True):
        pass
    assert capsys.readouterr().err == ""
    with busy("attack", quiet=False):
        pass
    assert capsys.readouterr().err.startswith("attack: done in")


def test_report_folder_is_checked_only_if_one_is_wanted(tmp_path):
    check_out(None, overwrite=False)
    check_out(tmp_path / "new" / "report", overwrite=False)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "report.json").write_text("{}")
    check_out(tmp_path, overwrite=True)
    with pytest.raises(InputError, match="exists and is not empty"):
        check_out(tmp_path, overwrite=False)
