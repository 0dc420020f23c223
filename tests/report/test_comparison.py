"""Several audits side by side: pages, folders and their verification."""

import json
import re
from dataclasses import replace

import pytest

from jaxaudit.errors import InputError
from jaxaudit.report.comparison import Comparison, comparison_sections, verify_folder
from jaxaudit.report.folder import check_folder
from jaxaudit.report.table import number
from jaxaudit.unlearn.base import Certificate
from tests.report.conftest import make_method, make_report


@pytest.fixture(scope="module")
def comparison():
    first = make_report()
    method = replace(
        make_method("certain", 0.0), certificate=Certificate(1.0, 1e-5, "a theorem"), cost=12_345.0
    )
    return Comparison({"heuristic": first, "certified": make_report(methods=(method,))})


@pytest.fixture(scope="module")
def folder(comparison, tmp_path_factory):
    return comparison.save(tmp_path_factory.mktemp("comparison") / "out")


def test_pages_and_one_report_per_audit(folder):
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {f"comparison.{suffix}" for suffix in ("json", "md", "html", "png")} <= files
    assert {"audits/heuristic/report.html", "audits/certified/evidence.npz"} <= files


def test_bound_accuracy_cost_and_certificate_of_every_method(comparison):
    rows = [
        row
        for section in comparison_sections(comparison.reports)
        for block in section.blocks
        for row in getattr(block, "rows", ())
    ]
    assert len(rows) == len(comparison.methods) == 3
    for row, method in zip(rows, comparison.methods):
        assert row[:2] == (method.title, number(method.analysis.epsilon))
        assert row[4] == "100.0/75.0/50.0"
    assert rows[2][3] == "(1, 1e-5)"
    assert rows[2][5] == "12,345"


def test_the_page_links_to_the_reports(folder):
    page = (folder / "comparison.html").read_text()
    links = re.findall(r'href="([^"]+)"', page)
    assert links == ["audits/heuristic/report.html", "audits/certified/report.html"]
    assert all((folder / link).is_file() for link in links)
    assert "data:image/png;base64," in page


def test_terminal_tables_and_json(comparison):
    text = comparison.table()
    for name, report in comparison.reports.items():
        assert f"{name}: " in text
        assert report.table() in text
    assert list(comparison.as_dict()["audits"]) == ["heuristic", "certified"]
    json.dumps(comparison.as_dict(), allow_nan=False)


def test_every_report_is_verified(folder):
    verification = verify_folder(folder)
    assert verification.ok
    names = {check.name.split(":")[0] for check in verification.checks}
    assert names == {"heuristic", "certified", "comparison"}


def test_a_single_report_is_verified_as_before(saved):
    assert verify_folder(saved).ok


def changed(folder):
    """What the checks say that fail."""
    return "; ".join(
        f"{check.name}: {check.detail}" for check in verify_folder(folder).checks if not check.ok
    )


def test_a_changed_report_is_found(comparison, tmp_path):
    folder = comparison.save(tmp_path / "out")
    path = folder / "audits" / "certified" / "report.json"
    path.write_text(path.read_text().replace('"toy"', '"other"'))
    assert "comparison: audits/certified/report.json" in changed(folder)


@pytest.mark.parametrize("name", ["comparison.md", "comparison.html", "comparison.png"])
def test_a_changed_or_missing_page_is_found(comparison, tmp_path, name):
    folder = comparison.save(tmp_path / "out")
    (folder / name).write_bytes(b"forged")
    assert changed(folder).startswith(f"comparison: {name}")
    (folder / name).unlink()
    assert changed(folder).startswith(f"comparison: {name} is missing")


def test_a_report_that_was_taken_away_is_an_error(comparison, tmp_path):
    folder = comparison.save(tmp_path / "out")
    (folder / "audits" / "certified").rename(tmp_path / "away")
    with pytest.raises(InputError, match="certified does not exist"):
        verify_folder(folder)


@pytest.mark.parametrize("text", ["{}", '{"sha256": {}}', '{"sha256": 3}'])
def test_a_damaged_page_is_an_error(comparison, tmp_path, text):
    folder = comparison.save(tmp_path / "out")
    (folder / "comparison.json").write_text(text)
    with pytest.raises(InputError, match=r"comparison\.json is damaged"):
        verify_folder(folder)


def test_overwriting_replaces_a_comparison_but_nothing_else(comparison, report, tmp_path):
    folder = comparison.save(tmp_path / "out")
    with pytest.raises(InputError, match="not empty"):
        check_folder(folder)
    (folder / "audits" / "certified" / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"thesis\.tex is not part of a report"):
        report.save(folder, overwrite=True)
    (folder / "audits" / "certified" / "thesis.tex").rename(folder / "audits" / "report.tex")
    with pytest.raises(InputError, match=r"report\.tex is not part of a report"):
        report.save(folder, overwrite=True)
    (folder / "audits" / "report.tex").unlink()
    report.save(folder, overwrite=True)
    assert not (folder / "audits").exists()
    assert verify_folder(folder).ok


def test_no_report_is_an_error():
    with pytest.raises(InputError, match="reports must name at least one audit, got none"):
        Comparison({})
