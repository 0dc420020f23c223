"""verify: an untouched report passes; a change anywhere is found, even if the digests are forged too."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from jaxaudit.analysis import analyse
from jaxaudit.errors import InputError
from jaxaudit.report.folder import REPORT_FILES, file_digest
from jaxaudit.report.verify import verify
from jaxaudit.unlearn.base import Certificate


@pytest.fixture
def folder(saved, tmp_path):
    """A copy of the saved report, to be tampered with."""
    return shutil.copytree(saved, tmp_path / "report")


def forge_digests(folder):
    document = json.loads((folder / "report.json").read_text())
    document["sha256"] = {name: file_digest(folder / name) for name in document["sha256"]}
    (folder / "report.json").write_text(json.dumps(document))


def tamper_json(folder, change):
    document = json.loads((folder / "report.json").read_text())
    change(document)
    (folder / "report.json").write_text(json.dumps(document))


def tamper_array(folder, name, change, method="leaky"):
    path = folder / "evidence.npz"
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    key = f"method/{method}/{name}" if name != "header" else name
    arrays[key] = change(arrays[key].copy())
    np.savez(path, **arrays)
    forge_digests(folder)


def mismatches(folder):
    """Names of the failed checks, without the method."""
    verification = verify(folder)
    assert verification.ok is all(check.ok for check in verification.checks)
    return {check.name.removeprefix("leaky: ") for check in verification.checks if not check.ok}


def put(index, value):
    def change(array):
        array[index] = value
        return array

    return change


def test_an_untouched_report_is_verified(saved):
    verification = verify(saved)
    assert verification.ok
    names = [check.name for check in verification.checks]
    assert names[:3] == ["schema version", "files", "design, claim and registration"]
    assert "leaky: statistics" in names
    assert "blind: statistics" in names
    assert verification.text().splitlines()[-1].startswith("verified")
    assert verification.as_dict()["ok"] is True
    assert len(verification.as_dict()["checks"]) == len(names)


def swap_first_row(signs):
    """Another balanced sign vector in row 0."""
    signs[0] = -signs[0]
    return signs


@pytest.mark.parametrize(
    ("name", "change", "found"),
    [
        ("signs", put((0, 0), 0), {"sign vectors"}),
        ("signs", swap_first_row, {"overlaps", "arrays", "statistics"}),
        ("calibration_signs", put((0, slice(None)), 1), {"sign vectors"}),
        ("calibration_signs", swap_first_row, {"arrays", "statistics"}),
        ("scores", put((0, 0, 0), 3.0), {"arrays", "statistics"}),
        ("scores", put((0, 0, 0), np.nan), {"scores"}),
        ("calibration_scores", put((0, 0, 0), 3.0), {"choices", "arrays", "statistics"}),
        ("run_ids", put(0, 99), {"run ids"}),
        ("run_ids", put(0, 3), {"run ids"}),
        ("run_ids", put(0, 18), {"run ids"}),
        ("calibration_run_ids", put(0, 99), {"run ids"}),
        ("calibration_run_ids", put(0, 16), {"run ids"}),
        ("failed", put(0, True), {"overlaps", "arrays", "statistics"}),
        ("failed", put(1, False), {"scores"}),
        ("calibration_failed", put(0, True), {"statistics"}),
        ("weights", put((0, 1), 0.0), {"arrays", "statistics"}),
        ("weights", put((0, 0), 0.5), {"scores"}),
        ("log_ratios", put((0, 0), 9.0), {"arrays"}),
        ("guesses", put((0, 0), 0), {"guesses", "arrays"}),
        ("overlaps", put(0, 12), {"overlaps", "arrays"}),
        ("overlaps", put(1, 1), {"overlaps", "arrays"}),
        ("log_evidence", put(0, 99.0), {"arrays"}),
        ("log_evidence", put(1, 0.0), {"overlaps", "arrays"}),
        ("noise_keys", lambda keys: put(0, keys[1])(keys), {"noise keys"}),
        ("noise_keys", lambda keys: keys[:-1], {"noise keys"}),
        *[
            (name, lambda array: array[:-1], {"every run counted"})
            for name in ("signs", "scores", "run_ids", "failed")
        ],
        ("overlaps", lambda array: array[:-1], {"every run counted"}),
        ("calibration_scores", lambda array: array[:-1], {"every run counted"}),
    ],
)
def test_a_change_of_any_array_is_found(folder, name, change, found):
    tamper_array(folder, name, change)
    assert found <= mismatches(folder)


def test_noise_shared_by_two_methods_is_found(folder):
    with np.load(folder / "evidence.npz") as file:
        keys = file["method/leaky/noise_keys"]
    tamper_array(folder, "noise_keys", lambda array: keys, method="blind")
    assert mismatches(folder) == {"noise keys"}
    assert f"noise keys: {len(keys)} are repeated" in verify(folder).text()


def with_iterates(report, change):
    """The report with an iterate on the way of its first method, whose noise keys are changed."""
    method = report.methods[0]
    early = replace(method, name="leaky@20", recorded_at=20, noise_keys=change(method.noise_keys.copy()))
    return replace(report, methods=(early, *report.methods))


def test_iterates_of_one_method_share_its_noise_and_only_its(report, tmp_path):
    verification = verify(with_iterates(report, lambda keys: keys).save(tmp_path / "same"))
    assert verification.ok
    assert "noise keys: 42 keys of 2 methods, none repeated" in verification.text()
    verification = verify(with_iterates(report, put((0, 0), 77)).save(tmp_path / "other"))
    assert [check.name for check in verification.checks if not check.ok] == ["noise keys"]
    assert "those of leaky are not those of the other iterates of leaky" in verification.text()


@pytest.mark.parametrize("epsilon", [0.05, 50.0])
def test_the_test_of_a_certificate_is_recomputed(report, tmp_path, epsilon):
    certified = replace(report.methods[0], certificate=Certificate(epsilon, 1e-5, "Theorem 3.1"))
    folder = replace(report, methods=(certified,)).save(tmp_path / "report")
    assert verify(folder).ok
    assert f"certificate: (epsilon {epsilon:g}, delta 1e-05) tested again" in verify(folder).text()
    tamper_json(folder, set_key("methods", 0, "certificate_verdict", "falsified", value=epsilon > 1))
    assert mismatches(folder) == {"certificate"}


def test_deleted_noise_keys_are_found(folder):
    path = folder / "evidence.npz"
    with np.load(path) as file:
        np.savez(path, **{name: file[name] for name in file.files if not name.endswith("noise_keys")})
    forge_digests(folder)
    assert mismatches(folder) == {"origin"}
    assert "the noise keys of leaky are missing; the noise keys of blind are missing" in verify(folder).text()


@pytest.mark.parametrize("value", [False, None, "yes"])
def test_who_trained_is_the_same_in_report_and_evidence(folder, value):
    tamper_json(folder, set_key("methods", 0, "trained_here", value=value))
    assert mismatches(folder) == {"origin"}
    assert f"trained_here.leaky is {value!r}, recomputed True" in verify(folder).text()


def test_a_report_on_runs_made_elsewhere_has_no_noise_keys(report, tmp_path):
    elsewhere = replace(report, methods=tuple(replace(method, noise_keys=None) for method in report.methods))
    verification = verify(elsewhere.save(tmp_path / "report"))
    assert verification.ok
    assert "origin: trained here: none" in verification.text()


def test_a_dropped_run_is_found(folder):
    per_run = ("signs", "scores", "run_ids", "failed", "log_ratios", "guesses", "overlaps", "log_evidence")
    for name in per_run:
        tamper_array(folder, name, lambda array: np.delete(array, 1, axis=0))
    assert "every run counted" in mismatches(folder)


def set_key(*path, value):
    def change(document):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


STATISTICS = ("methods", 0, "statistics")


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        ((*STATISTICS, "epsilon"), 9.9, {"statistics"}),
        ((*STATISTICS, "direct", "epsilon"), 9.9, {"statistics"}),
        ((*STATISTICS, "soft_small_delta", "epsilon"), 9.9, {"statistics"}),
        ((*STATISTICS, "paper", "ceiling"), 9.9, {"statistics"}),
        ((*STATISTICS, "leakage", "records", 0, "p_value"), 1e-9, {"statistics"}),
        ((*STATISTICS, "leakage", "records", 0, "record_ids"), ["somebody"], {"statistics"}),
        ((*STATISTICS, "verdict", "falsified"), False, {"statistics"}),
        ((*STATISTICS, "verdict", "p_values", "direct"), 0.9, {"statistics"}),
        ((*STATISTICS, "selection", "num_guesses"), 2, {"choices", "statistics"}),
        ((*STATISTICS, "selection", "temperature"), 2.5, {"choices", "statistics"}),
        ((*STATISTICS, "notes"), [], {"statistics"}),
        (STATISTICS, {}, {"choices", "statistics"}),
        (("methods", 0, "run_ids", 0), 77, {"run ids"}),
        (("methods", 0, "name"), "other", {"methods"}),
        (("methods",), [], {"methods"}),
        (("design", "significance"), 0.01, {"design, claim and registration"}),
        (("claim", "epsilon"), 0.3, {"design, claim and registration"}),
        (("methods", 0, "certificate", "epsilon"), 1.0, {"certificate"}),
        (("methods", 0, "certificate_verdict"), {"falsified": False}, {"certificate"}),
        (("registered",), True, {"design, claim and registration"}),
        (("schema_version",), 99, {"schema version"}),
        (("sha256", "evidence.npz"), "0" * 64, {"files"}),
        (("sha256",), {}, {"files"}),
    ],
)
def test_a_change_of_any_number_is_found(folder, path, value, found):
    tamper_json(folder, set_key(*path, value=value))
    assert mismatches(folder) == found


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        (
            "design",
            {"num_groups": 12, "num_audit_runs": 4},
            {"design, claim and registration", "every run counted"},
        ),
        ("design", {"num_groups": 1}, {"design, claim and registration", "design"}),
        ("design", {"groups": 12}, {"design, claim and registration", "design"}),
        ("claim", {"epsilon": 50.0}, {"design, claim and registration", "statistics"}),
        ("schema_version", 0, {"schema version"}),
        ("record_ids", [["a"]], {"record ids"}),
        ("trained_here", {"leaky": True}, {"origin"}),
        ("trained_here", None, {"origin"}),
        ("certificates", None, {"certificate"}),
        ("certificates", {"leaky": {"epsilon": -1.0, "delta": 0.0, "reason": ""}}, {"certificate"}),
    ],
)
def test_a_change_of_the_header_is_found(folder, key, value, found):
    tamper_array(folder, "header", lambda text: np.array(json.dumps(json.loads(str(text)) | {key: value})))
    assert found <= mismatches(folder)


@pytest.mark.parametrize("name", ["report.html", "report.md", "bounds.png", "evidence.npz"])
def test_a_change_of_any_file_is_found(folder, name):
    with open(folder / name, "ab") as file:
        file.write(b" ")
    verification = verify(folder)
    assert [check.name for check in verification.checks if not check.ok] == ["files"]
    assert f"{name} was changed" in verification.text()


def test_a_missing_page_is_found(folder):
    (folder / "report.html").unlink()
    verification = verify(folder)
    assert "report.html is missing" in verification.text()
    assert verification.text().splitlines()[-1].startswith("NOT verified: 1 of ")


@pytest.mark.parametrize("name", sorted(REPORT_FILES - {"report.json"}))
def test_a_file_without_a_digest_is_found(folder, name):
    tamper_json(folder, lambda document: document["sha256"].pop(name))
    assert mismatches(folder) == {"files"}
    assert f"{name} has no digest in report.json" in verify(folder).text()


def test_the_figure_of_guesses_is_expected_where_some_were_chosen(report, tmp_path):
    design = report.design.replace(num_guesses=4)
    method = report.methods[0]
    method = replace(method, analysis=analyse(design, method.calibration, method.audited, report.claim))
    folder = replace(report, design=design, methods=(method,)).save(tmp_path / "report")
    assert not (folder / "guesses.png").exists()
    assert verify(folder).ok


def test_the_text_names_the_number(folder):
    tamper_json(folder, set_key(*STATISTICS, "direct", "epsilon", value=9.9))
    text = verify(folder).text()
    assert "MISMATCH  leaky: statistics: direct.epsilon is 9.9, recomputed " in text


@pytest.mark.parametrize("name", ["report.json", "evidence.npz"])
def test_missing_and_damaged_files_are_input_errors(folder, name):
    (folder / name).write_bytes(b"{")
    with pytest.raises(InputError, match=name):
        verify(folder)
    (folder / name).unlink()
    with pytest.raises(InputError, match=name):
        verify(folder)


@pytest.mark.parametrize("path", [("methods",), ("sha256",), ("methods", 0, "statistics")])
def test_a_document_without_its_parts_is_an_input_error(folder, path):
    tamper_json(folder, set_key(*path, value=None))
    with pytest.raises(InputError, match=r"report\.json is damaged"):
        verify(folder)


def test_a_missing_array_is_an_input_error(folder):
    path = folder / "evidence.npz"
    with np.load(path) as file:
        np.savez(path, **{name: file[name] for name in file.files if not name.endswith("leaky/guesses")})
    with pytest.raises(InputError, match="lacks the arrays guesses of method 'leaky'"):
        verify(folder)


def test_a_missing_folder_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        verify(tmp_path / "nothing")
