"""``jaxaudit verify``: recompute every statistical number of a report folder from its evidence."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxaudit.analysis import Analysis, Claim, analyse, judge_claim
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.report.compare import differences, same_array
from jaxaudit.report.document import SCHEMA_VERSION, plain, read_json, statistics_document, verdict_document
from jaxaudit.report.evidence_file import Evidence, read_evidence
from jaxaudit.report.figures import GUESSES
from jaxaudit.report.folder import DOCUMENT, EVIDENCE, REPORT_FILES, file_digest
from jaxaudit.report.results import family_name
from jaxaudit.scored import AuditedRuns, CalibrationRuns, check_unique

Arrays = dict[str, np.ndarray]
_MAX_DIFFERENCES = 5


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Verification:
    """Outcome of `verify`: the report is what its evidence says only if every check is passed."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every check was passed."""
        return all(check.ok for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"ok": self.ok} | plain(self)

    def text(self) -> str:
        """One line per check, then the conclusion."""
        lines = [
            f"{'ok      ' if check.ok else 'MISMATCH'}  {check.name}: {check.detail}" for check in self.checks
        ]
        failed = sum(not check.ok for check in self.checks)
        end = (
            "verified: every statistical number follows from the evidence (accuracies and timings need the "
            "models)"
            if self.ok
            else f"NOT verified: {failed} of {len(self.checks)} checks found a mismatch"
        )
        return "\n".join([*lines, end])


def verify(folder: str | Path) -> Verification:
    """Check a report folder against its own evidence.

    Parameters
    ----------
    folder
        A folder written by `AuditReport.save`.

    Raises
    ------
    InputError
        If a file is missing or damaged, so that nothing can be compared.

    Examples
    --------
    >>> import tempfile
    >>> from jaxaudit.external import audit_scores
    >>> signs = np.random.default_rng(0).permuted(np.tile([1, -1], (30, 10)), axis=1)
    >>> report = audit_scores(
    ...     CalibrationRuns(signs[:20], np.sin(1.0 * np.arange(400)).reshape(20, 20)),
    ...     AuditedRuns(signs[20:], np.sin(2.0 * np.arange(200)).reshape(10, 20)),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     verify(report.save(Path(folder) / "report")).ok
    True
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"report folder {folder} does not exist")
    document = read_json(folder / DOCUMENT)
    evidence = read_evidence(folder / EVIDENCE)
    versions = _check_versions(document, evidence)
    # The layout of another version is not known, so nothing else can be checked.
    if not versions.ok:
        return Verification((versions,))
    _check_layout(folder, document)
    return Verification((versions, *_all_checks(folder, document, evidence)))


def _check_layout(folder: Path, document: dict[str, Any]) -> None:
    """Raise if the parts of the document that are compared are not there."""
    methods, digests = document.get("methods"), document.get("sha256")
    named = isinstance(methods, list) and all(
        isinstance(method, dict) and "name" in method and isinstance(method.get("statistics"), dict)
        for method in methods
    )
    if not named or not isinstance(digests, dict):
        raise InputError(
            f"{folder / DOCUMENT} is damaged: it lacks 'methods' with name and statistics, or 'sha256'"
        )


def _check_versions(document: dict[str, Any], evidence: Evidence) -> Check:
    found = {DOCUMENT: document.get("schema_version"), EVIDENCE: evidence.header.get("schema_version")}
    wrong = [f"{name} has version {version}" for name, version in found.items() if version != SCHEMA_VERSION]
    return _check("schema version", wrong, f"version {SCHEMA_VERSION}")


def _check(name: str, problems: Iterable[str], good: str) -> Check:
    listed = list(problems)
    more = f"; and {len(listed) - _MAX_DIFFERENCES} more" if len(listed) > _MAX_DIFFERENCES else ""
    return Check(name, not listed, "; ".join(listed[:_MAX_DIFFERENCES]) + more if listed else good)


def _all_checks(folder: Path, document: dict[str, Any], evidence: Evidence) -> Iterator[Check]:
    yield _check_files(folder, document)
    header = {key: evidence.header[key] for key in ("design", "claim", "registered")}
    stated = {key: document.get(key) for key in header}
    yield _check("design, claim and registration", differences(stated, header), "report and evidence agree")
    methods = {method["name"]: method for method in document["methods"]}
    same_methods = list(methods) == list(evidence.methods)
    yield Check("methods", same_methods, f"report has {list(methods)}, evidence has {list(evidence.methods)}")
    if not same_methods:
        return
    try:
        design = AuditDesign(**header["design"])
        claim = None if header["claim"] is None else Claim(**header["claim"])
    except (TypeError, InputError) as error:
        yield Check("design", False, str(error))
        return
    record_ids = evidence.header["record_ids"]
    if record_ids is not None and len(record_ids) != design.num_groups:
        yield Check("record ids", False, f"there are {len(record_ids)}, for {design.num_groups} groups")
        return
    certificates = evidence.header["certificates"]
    for name, arrays in evidence.methods.items():
        certificate = certificates.get(name) if isinstance(certificates, dict) else certificates
        for check in _method_checks(design, claim, record_ids, arrays, methods[name], certificate):
            yield Check(f"{name}: {check.name}", check.ok, check.detail)
    yield _check_origin(evidence, methods)
    yield _check_noise(evidence.methods)


def _check_files(folder: Path, document: dict[str, Any]) -> Check:
    digests = document["sha256"]
    expected = REPORT_FILES - {DOCUMENT} - ({GUESSES} if not _has_guess_curve(document) else set())
    problems = [f"{name} has no digest in {DOCUMENT}" for name in sorted(expected - digests.keys())]
    for name, digest in digests.items():
        if not (folder / name).is_file():
            problems.append(f"{name} is missing")
        elif file_digest(folder / name) != digest:
            problems.append(f"{name} was changed after the report was written")
    return _check("files", problems, f"{len(digests)} files have the digests that {DOCUMENT} names")


def _has_guess_curve(document: dict[str, Any]) -> bool:
    """Whether some method chose its number of guesses, which is drawn in a figure of its own."""
    selections = [method["statistics"].get("selection") for method in document["methods"]]
    return any(isinstance(chosen, dict) and chosen.get("candidate_guesses") for chosen in selections)


def _method_checks(
    design: AuditDesign,
    claim: Claim | None,
    record_ids: Any,
    arrays: Arrays,
    stated: dict[str, Any],
    certificate: Any,
) -> Iterator[Check]:
    shapes = _check_shapes(design, arrays)
    yield shapes
    if not shapes.ok:
        return
    yield _check_balance(arrays)
    yield _check_run_ids(arrays, stated)
    try:
        calibration, audited = _scored_runs(arrays)
        analysis = analyse(design, calibration, audited, claim)
    except InputError as error:
        yield Check("scores", False, str(error))
        return
    yield _check_guesses(arrays, analysis.selection.num_guesses)
    yield _check_overlaps(arrays)
    stored = stated["statistics"]
    chosen = differences(stored.get("selection"), plain(analysis.selection), "selection")
    yield _check("choices", chosen, "r, temperature and threshold follow from the calibration runs alone")
    yield _check(
        "arrays", _changed_arrays(arrays, analysis), "log-ratios, guesses, overlaps, evidence recomputed"
    )
    computed = statistics_document(analysis, record_ids)
    good = f"every statistical number recomputed, epsilon = {analysis.epsilon:.6g}"
    yield _check("statistics", differences(stored, computed), good)
    yield _check_certificate(analysis, certificate, stated)


def _check_certificate(analysis: Analysis, certificate: Any, stated: dict[str, Any]) -> Check:
    """Report and evidence state the same certificate, and its verdict follows from the evidence."""
    problems = differences(stated.get("certificate"), certificate, "certificate")
    verdict, good = None, "nothing is proved"
    try:
        if certificate is not None and certificate["epsilon"] is not None:
            claim = Claim(certificate["epsilon"], certificate["delta"])
            verdict = judge_claim(analysis, claim)
            good = f"(epsilon {claim.epsilon:g}, delta {claim.delta:g}) tested again"
    except (KeyError, TypeError, InputError) as error:
        problems.append(f"certificate {certificate!r} cannot be tested: {error}")
    problems += differences(
        stated.get("certificate_verdict"), verdict_document(verdict), "certificate_verdict"
    )
    return _check("certificate", problems, good)


def _check_shapes(design: AuditDesign, arrays: Arrays) -> Check:
    """Every run is there, and the arrays fit together, so that the other checks can index them."""
    groups, audited = design.num_groups, design.num_audit_runs
    runs = {"": audited, "calibration_": design.num_calibration_runs}
    expected: dict[str, tuple[int, ...]] = dict.fromkeys(("log_ratios", "guesses"), (audited, groups))
    expected |= dict.fromkeys(("overlaps", "log_evidence"), (audited,))
    for prefix, number in runs.items():
        expected |= {
            f"{prefix}signs": (number, groups),
            f"{prefix}scores": (number, *arrays["weights"].shape),
        }
        expected |= {f"{prefix}{name}": (number,) for name in ("run_ids", "failed")}
    problems = [
        f"{name} has shape {arrays[name].shape}, the design says {shape}"
        for name, shape in expected.items()
        if arrays[name].shape != shape
    ]
    good = f"all {audited} audited and {design.num_calibration_runs} calibration runs of the design are there"
    return _check("every run counted", problems, good)


def _check_balance(arrays: Arrays) -> Check:
    problems = []
    for name in ("calibration_signs", "signs"):
        signs = arrays[name]
        unbalanced = ((signs == 1).sum(1) != signs.shape[1] // 2) | (np.abs(signs) != 1).any(1)
        problems += [f"row {row} of {name} is not balanced" for row in np.flatnonzero(unbalanced)]
    return _check("sign vectors", problems, "balanced in every run")


def _check_run_ids(arrays: Arrays, stated: dict[str, Any]) -> Check:
    ids = np.concatenate([arrays["calibration_run_ids"], arrays["run_ids"]])
    problems = []
    try:
        check_unique("run ids", ids)
    except InputError as error:
        problems.append(str(error))
    for name in ("calibration_run_ids", "run_ids"):
        problems += differences(stated.get(name), plain(arrays[name]), name)
    return _check("run ids", problems, "calibration and audited runs are disjoint")


def _check_origin(evidence: Evidence, methods: dict[str, dict[str, Any]]) -> Check:
    """Report and evidence agree on what was trained here; of those runs, the noise keys must be there."""
    stated = {name: method.get("trained_here") for name, method in methods.items()}
    problems = differences(stated, evidence.header["trained_here"], "trained_here")
    for name, made_here in stated.items():
        if made_here is not ("noise_keys" in evidence.methods[name]):
            found = "are missing" if made_here else "are there, but it was not trained here"
            problems.append(f"the noise keys of {name} {found}")
    ours = ", ".join(name for name, made_here in stated.items() if made_here)
    return _check("origin", problems, f"trained here: {ours or 'none'}")


def _check_noise(methods: dict[str, Arrays]) -> Check:
    """Every key is used in one run of one method; iterates on the way share the keys of their method's end."""
    made_here = {name: arrays for name, arrays in methods.items() if "noise_keys" in arrays}
    families: dict[str, list[tuple[int, ...]]] = {}
    problems = []
    for name, arrays in made_here.items():
        runs = arrays["calibration_run_ids"].size + arrays["run_ids"].size
        array = arrays["noise_keys"]
        if array.ndim == 0 or len(array) != runs:
            problem = f"noise_keys of {name} has shape {array.shape}, but there are {runs} runs"
            return Check("noise keys", False, problem)
        keys = list(map(tuple, array.reshape(runs, -1).tolist()))
        if families.setdefault(family_name(name), keys) != keys:
            problems.append(f"those of {name} are not those of the other iterates of {family_name(name)}")
    if not made_here:
        return Check("noise keys", True, "none stored: the runs were made elsewhere")
    found = [key for keys in families.values() for key in keys]
    repeated = len(found) - len(set(found))
    problems += [f"{repeated} are repeated"] if repeated else []
    return _check("noise keys", problems, f"{len(found)} keys of {len(families)} methods, none repeated")


def _scored_runs(arrays: Arrays) -> tuple[CalibrationRuns, AuditedRuns]:
    fields = ("signs", "scores", "run_ids", "failed")
    calibration = {field: arrays[f"calibration_{field}"] for field in fields}
    audited = {field: arrays[field] for field in fields}
    weights = arrays["weights"]
    return CalibrationRuns(**calibration, weights=weights), AuditedRuns(**audited, weights=weights)


def _check_guesses(arrays: Arrays, num_guesses: int) -> Check:
    guesses = arrays["guesses"]
    wrong = [(guesses == sign).sum(1) != num_guesses // 2 for sign in (-1, 1)]
    bad = wrong[0] | wrong[1] | ~np.isin(guesses, (-1, 0, 1)).all(1)
    problems = [f"run {arrays['run_ids'][row]} has other guesses" for row in np.flatnonzero(bad)]
    return _check("guesses", problems, f"{num_guesses // 2} of each sign in every run")


def _check_overlaps(arrays: Arrays) -> Check:
    failed = arrays["failed"].astype(bool)
    overlaps = np.where(failed, 0, (arrays["guesses"] * arrays["signs"] == 1).sum(1))
    run_ids, stored = arrays["run_ids"], arrays["overlaps"]
    problems = [
        f"overlap of run {run_ids[row]} is {stored[row]}, counted {overlaps[row]}"
        for row in np.flatnonzero(overlaps != stored)
    ]
    problems += [
        f"failed run {run_ids[row]} has evidence"
        for row in np.flatnonzero(failed & (arrays["log_evidence"] > -np.inf))
    ]
    return _check("overlaps", problems, f"counted again; {failed.sum()} failed runs count 0")


def _changed_arrays(arrays: Arrays, analysis: Analysis) -> list[str]:
    names = ("log_ratios", "guesses", "overlaps", "log_evidence")
    return [
        f"{name} differ"
        for name in names
        if not same_array(arrays[name], np.asarray(getattr(analysis, name)))
    ]
