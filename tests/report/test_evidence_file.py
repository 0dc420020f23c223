"""evidence.npz: every array comes back; damage is named."""

import json

import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.report.evidence_file import REQUIRED_ARRAYS, read_evidence, write_evidence


@pytest.fixture
def path(report, tmp_path):
    write_evidence(tmp_path / "evidence.npz", report)
    return tmp_path / "evidence.npz"


def rewrite(path, **changes):
    """The file with some arrays changed, or removed where the change is None."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def test_every_array_comes_back(report, path):
    evidence = read_evidence(path)
    assert list(evidence.methods) == ["leaky", "blind"]
    for method in report.methods:
        arrays = evidence.methods[method.name]
        assert set(arrays) == {*REQUIRED_ARRAYS, "noise_keys"}
        for field in ("signs", "scores", "run_ids", "failed"):
            np.testing.assert_array_equal(arrays[f"calibration_{field}"], getattr(method.calibration, field))
            np.testing.assert_array_equal(arrays[field], getattr(method.audited, field))
        for field in ("log_ratios", "guesses", "overlaps", "log_evidence"):
            np.testing.assert_array_equal(arrays[field], getattr(method.analysis, field))
        np.testing.assert_array_equal(arrays["weights"], method.audited.weights)
        np.testing.assert_array_equal(arrays["noise_keys"], method.noise_keys)


def test_header_warns_and_tells_the_design(report, path):
    header = read_evidence(path).header
    assert header["schema_version"] == 1
    assert "one score per record" in header["privacy"]
    assert header["design"] == report.design.as_dict()
    assert header["record_ids"][3] == ["r3a"]
    assert header["trained_here"] == {"leaky": True, "blind": True}


def test_no_array_is_pickled(path):
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"header": None}, "no array 'header'"),
        ({"header": np.array("{")}, "header is not a JSON object"),
        ({"header": np.array("3")}, "header is not a JSON object"),
        (
            {"header": np.array(json.dumps({"design": {}}))},
            "lacks schema_version, claim, registered, record_ids, trained_here",
        ),
        ({"stray": np.zeros(2)}, "unknown array 'stray'"),
        ({"method/leaky/scores": None}, "lacks the arrays scores of method 'leaky'"),
    ],
)
def test_damage_is_named(path, changes, message):
    rewrite(path, **changes)
    with pytest.raises(InputError, match=message):
        read_evidence(path)


def test_pickled_arrays_are_refused(path):
    rewrite(path, **{"method/leaky/scores": np.array([{}])})
    with pytest.raises(InputError, match="pickled"):
        read_evidence(path)


def test_a_truncated_file_is_an_input_error(path):
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match="damaged"):
        read_evidence(path)
