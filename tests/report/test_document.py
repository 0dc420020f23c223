"""report.json: plain types, nothing left out that is a statistic, nothing in that is per record."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.report.document import (
    NUM_TOP_RECORDS,
    plain,
    read_json,
    report_document,
    statistics_document,
    write_json,
)
from jaxaudit.unlearn.base import Certificate


def test_plain_gives_json_types():
    value = {
        1: (np.float64(2.5), np.int8(3), np.bool_(True)),
        "bad": [float("inf"), float("nan")],
        "none": None,
    }
    assert plain(value) == {"1": [2.5, 3, True], "bad": ["inf", "nan"], "none": None}


def test_plain_names_what_it_cannot_write():
    with pytest.raises(InputError, match=r"spec\['loss'\] cannot be written as JSON, got function"):
        plain({"loss": test_plain_gives_json_types}, "spec")


def test_document_is_standard_json_and_comes_back(report, tmp_path):
    document = report_document(report)
    write_json(tmp_path / "report.json", document)
    assert read_json(tmp_path / "report.json") == document
    assert document["schema_version"] == 1
    assert document["claim"] == {"epsilon": 0.2, "delta": 0.0}
    assert document["design"]["num_groups"] == 12
    assert document["methods"][0]["trained_here"] is True
    assert document["methods"][0]["run_ids"] == [16, 17, 18, 19, 20]
    json.dumps(document, allow_nan=False)


def test_a_method_says_what_it_cost_and_what_is_proved_about_it(report):
    numbers = {"mean": 2.5, "min": 1.0, "max": 4.0, "not_finite": 3}
    certificate = Certificate(0.05, 0.0, "Theorem 3.1")
    method = replace(report.methods[0], cost=64.0, measured={"eigenvalue": numbers}, certificate=certificate)
    first, second = report_document(replace(report, methods=(method, report.methods[1])))["methods"]
    assert first["cost"] == 64.0
    assert first["measured"] == {"eigenvalue": numbers}
    assert first["certified"] is True
    assert first["certificate"] == {"epsilon": 0.05, "delta": 0.0, "reason": "Theorem 3.1"}
    assert first["certificate_verdict"]["falsified"] is True
    assert first["certificate_verdict"]["text"].startswith("falsified")
    assert (second["certified"], second["certificate_verdict"], second["measured"]) == (False, None, {})
    assert (first["recorded_at"], second["cost"]) == (None, None)


def test_statistics_hold_every_field_that_is_not_per_record(report):
    analysis = report.methods[0].analysis
    document = statistics_document(analysis, report.record_ids)
    per_record = {"log_ratios", "guesses"}
    assert {field.name for field in fields(analysis)} - set(document) == per_record | {"design"}
    assert document["epsilon"] == analysis.direct.epsilon > 0
    assert document["direct"]["overlaps"] == analysis.overlaps.tolist()
    assert document["log_evidence"][1] == "-inf"
    assert document["failed_audited"] == [17]
    assert document["verdict"]["falsified"] is True
    assert document["verdict"]["text"].startswith("falsified")


def test_leakage_is_cut_to_the_top_records_with_their_ids(report):
    analysis = report.methods[0].analysis
    document = statistics_document(analysis, report.record_ids)["leakage"]
    assert len(document["records"]) == min(NUM_TOP_RECORDS, 12)
    assert set(document["tpr_at_fpr"]) == {"0.001", "0.01"}
    for stored, record in zip(document["records"], analysis.leakage.records):
        assert stored["group"] == record.group
        assert stored["record_ids"][0] == f"r{record.group}a"
    assert statistics_document(analysis, None)["leakage"]["records"][0]["record_ids"] is None


@pytest.mark.parametrize(
    ("text", "message"), [("{", "cannot be read as JSON"), ("[1]", "must hold a JSON object")]
)
def test_damaged_json_is_an_input_error(tmp_path, text, message):
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read_json(tmp_path / "report.json")


def test_missing_json_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_json(tmp_path / "report.json")
