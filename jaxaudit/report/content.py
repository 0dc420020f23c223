"""What a report says, in order and in plain words; `markdown` and `html` write it down."""

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from jaxaudit.report.blocks import Banner, Block, Bullets, Code, Figure, Section, Table, Text, Warn
from jaxaudit.report.conditions import condition_rows, registration
from jaxaudit.report.document import NUM_TOP_RECORDS, PRIVACY_WARNING, plain
from jaxaudit.report.figures import BOUNDS, CAPTIONS, GUESSES, OVERLAPS
from jaxaudit.report.table import confidence, failures, footnote, header_rows, number, row, short

if TYPE_CHECKING:
    from jaxaudit.report.results import AuditReport, MethodResult

TITLE = "Audit of machine unlearning"


def report_sections(report: "AuditReport", figures: Collection[str]) -> list[Section]:
    """All sections of the report. ``figures`` are the names of the figures that were drawn."""
    return [
        Section("In short", (*_verdicts(report), *_claim(report), *_findings(report))),
        Section("What was measured", (_results(report), Text(footnote(report)), *_figure(BOUNDS, figures))),
        Section("What this means, and what it does not", (Bullets(_meaning(report)),)),
        Section("Methods", (Text("Each method was audited on its own, at the same design."),)),
        *(_method(method, report) for method in report.methods),
        Section("Overlaps against chance", _figure(OVERLAPS, figures)),
        Section("Conditions of validity", (Text(_CONDITIONS), _conditions(report))),
        Section("Design and choices", (*_design(report), *_figure(GUESSES, figures))),
        Section("How to repeat and verify", _provenance(report)),
    ]


def _figure(name: str, figures: Collection[str]) -> tuple[Block, ...]:
    return (Figure(name, CAPTIONS[name]),) if name in figures else ()


def _verdicts(report: "AuditReport") -> list[Block]:
    verdicts = [(method.title, method.analysis.verdict) for method in report.methods]
    certificates = [
        (f"{method.title}: certificate contradicted", method.certificate_verdict)
        for method in report.methods
        if method.certificate_verdict is not None and method.certificate_verdict.falsified
    ]
    return [
        Banner(title, f"{_capital(verdict.text)}.", alarm=verdict.falsified)
        for title, verdict in certificates + verdicts
        if verdict is not None
    ]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _claim(report: "AuditReport") -> list[Block]:
    titles = "; ".join(method.title for method in report.methods)
    audited = (
        f"Audited on {report.data.get('name', 'unnamed data')}: {titles}. There are "
        f"{report.design.num_groups} candidate groups of records; half of them, drawn at random, are "
        "forgotten in each run."
    )
    if report.claim is None:
        claim = "No claim was given, so none was tested; the numbers below are lower bounds on epsilon."
    else:
        claim = (
            f"Claim under test: epsilon = {report.claim.epsilon:g} at delta = {report.claim.delta:g}, at "
            f"significance {report.design.significance:g} for each method."
        )
    return [Text(audited), Text(claim), Text(f"Registration: {registration(report)[0]}")]


def _findings(report: "AuditReport") -> list[Block]:
    lines = [f"{method.title}: {_finding(method, report)}." for method in report.methods]
    looks = [Warn(_LOOKS)] if any(method.recorded_at is not None for method in report.methods) else []
    return [Bullets(tuple(lines)), *looks, Warn(PRIVACY_WARNING)]


_LOOKS = (
    "Results whose name ends in @ and a number of updates are looks along one set of runs, at iterates before the "
    "method's end. Each of them alone is a valid bound; the largest of several is not."
)


def _finding(method: "MethodResult", report: "AuditReport") -> str:
    analysis = method.analysis
    if analysis.no_evidence:
        found = analysis.notes[-1]  # why there is none
    elif analysis.epsilon > 0:
        found = (
            f"with {confidence(report)} confidence the true epsilon is at least {number(analysis.epsilon)} at "
            f"delta = {short(report.design.delta)}; this design can show at most {number(analysis.ceiling)}"
        )
    else:
        found = (
            "this attack found nothing (the lower bound on epsilon is 0); "
            f"this design can show at most {number(analysis.ceiling)}"
        )
    return "; ".join([found, *failures(method)])


def _results(report: "AuditReport") -> Table:
    titles, units = header_rows(report)
    header = tuple(f"{title} ({unit})" if unit else title for title, unit in zip(titles, units))
    return Table(header, tuple(tuple(row(method)) for method in report.methods))


def _meaning(report: "AuditReport") -> tuple[str, ...]:
    level = confidence(report)
    return (
        "The audit trains many models, each with its own random half of the candidate groups, lets the "
        "method forget that half, and asks an auditor to tell from the unlearned model which half it was. "
        "If forgetting were perfect, the auditor could only guess. Epsilon measures the distance from "
        "that: at epsilon = 0 the unlearned model says nothing about the forgotten records; the larger "
        "epsilon, the more it says.",
        f"The bound measures what this attacker found. The true epsilon is at least the bound, with {level} "
        "confidence; how much larger it is, the audit cannot say. A better attack can only raise the bound.",
        "'Not falsified' is no certificate. It says that this attack, with this number of runs, found no "
        "evidence against the claim. A claim at or above the ceiling could not have been falsified, "
        "whatever the model remembers.",
        "For a deterministic pipeline the true epsilon at delta = 0 is 0 or infinite: the unlearned model "
        "either does not depend on the forgotten records at all, or two different halves give two "
        "different models. The bound then says how easily this attack sees the difference; it is finite "
        "because any number of runs is.",
        f"The verdict uses {_deciding(report)}; the other columns are informational. Picking the "
        "largest column afterwards would be a second look, which this significance does not cover. Each "
        "unlearning method has a test of its own; over several of them the chances of a false alarm add up.",
        "'Direct' counts right guesses; 'soft' adds up likelihood ratios; 'Thm 4.2' is the bound of the "
        "paper 'Auditing of Unlearning Algorithms' on the same guesses.",
    )


def _deciding(report: "AuditReport") -> str:
    if report.design.method == "both":
        return "the declared methods, direct and soft, each at half the significance"
    return f"the declared method ({report.design.method}) at the full significance"


def _method(method: "MethodResult", report: "AuditReport") -> Section:
    blocks: list[Block] = [Text(_describe(method))]
    blocks += [Warn(note) for note in method.notes]
    blocks += [Table(("measured", "value"), tuple(_measurements(method))), *_records(method, report)]
    return Section(method.title, tuple(blocks), level=3)


def _describe(method: "MethodResult") -> str:
    look = "" if method.recorded_at is None else f"The iterate after {method.recorded_at:,} updates."
    return " ".join(part for part in (method.description, look, _certificate(method)) if part)


def _certificate(method: "MethodResult") -> str:
    certificate = method.certificate
    if certificate is None:
        return ""
    if certificate.epsilon is None:
        return f"Uncertified: {certificate.reason}."
    return f"Certified ({short(certificate.epsilon)}, {short(certificate.delta)}): {certificate.reason}."


def _measurements(method: "MethodResult") -> list[tuple[str, str]]:
    analysis = method.analysis
    leakage = analysis.leakage
    rows = [
        (
            f"epsilon, {name}, delta = {bound.delta:g}",
            f"at least {number(bound.epsilon)}"
            + ("" if analysis.no_evidence else f" of at most {number(bound.ceiling)}"),
        )
        for name, bound in _bounds(method)
    ]
    if analysis.verdict is not None:
        rows += [
            (f"p-value of the claim, {name}", f"{value:.3g} (level {analysis.verdict.levels[name]:g})")
            for name, value in analysis.verdict.p_values.items()
        ]
    overlaps = f"{_listed(analysis.overlaps)} of {analysis.selection.num_guesses}"
    rows.append(
        ("overlaps of the audited runs", "guesses are arbitrary" if analysis.no_evidence else overlaps)
    )
    rows.append(("area under the ROC curve", f"{leakage.roc_auc:.3f} (0.5 is chance)"))
    rows += [
        (f"true-positive rate at {100 * rate:g} % false positives", f"{100 * value:.2f} %")
        for rate, value in leakage.tpr_at_fpr.items()
    ]
    rows.append(("failed calibration runs, left out", _listed(analysis.failed_calibration) or "none"))
    rows.append(("failed audited runs, counted as no evidence", _listed(analysis.failed_audited) or "none"))
    if method.moved is not None:
        rows.append(("mean distance the parameters moved", f"{method.moved:.3g}"))
    if method.cost is not None:
        rows.append(("cost, gradient evaluations per run", f"{method.cost:,.0f}"))
    return rows + [(f"{name}, over the runs", _range(numbers)) for name, numbers in method.measured.items()]


def _range(numbers: dict[str, float]) -> str:
    """Mean and range of a measured number, and how many runs they leave out."""
    parts = []
    if "mean" in numbers:
        parts.append(f"mean {numbers['mean']:.4g}, from {numbers['min']:.4g} to {numbers['max']:.4g}")
    if numbers["not_finite"]:
        parts.append(f"not finite in {numbers['not_finite']:.0f} runs")
    return "; ".join(parts)


def _bounds(method: "MethodResult") -> list[tuple[str, Any]]:
    analysis = method.analysis
    return [
        ("direct", analysis.direct),
        ("direct", analysis.direct_small_delta),
        ("soft", analysis.soft),
        ("soft", analysis.soft_small_delta),
        ("Theorem 4.2", analysis.paper),
    ]


def _listed(values: Any) -> str:
    return ", ".join(str(value) for value in plain(values))


def _records(method: "MethodResult", report: "AuditReport") -> tuple[Block, ...]:
    if method.analysis.no_evidence:
        return ()
    leakage = method.analysis.leakage
    rate = f"at a false-discovery rate of {leakage.false_discovery_rate:g}"
    if leakage.num_recognised == 0:
        none = f"None of the {report.design.num_groups} groups is recognised {rate}"
        return (Text(f"{none}, which does not mean that they were forgotten."),)
    found = (
        f"{leakage.num_recognised} of {report.design.num_groups} groups are recognised {rate}. The surest are "
        "below. A group after that number is not recognised, which does not mean that it was forgotten. "
        "Log-odds: the attacker's evidence for the true membership, in nats, over all audited runs; it assumes "
        "Gaussian scores, so very large values are exaggerated."
    )
    rows = tuple(
        (
            ", ".join(report.record_ids[record.group]) if report.record_ids else f"group {record.group}",
            f"{record.log_odds:.2f}",
            f"{record.p_value:.2g}",
            f"{record.q_value:.2g}",
        )
        for record in leakage.records[:NUM_TOP_RECORDS]
    )
    return Text(found), Table(("record", "posterior log-odds", "p-value", "q-value"), rows)


_CONDITIONS = (
    "The bound is valid under these conditions. What is 'verified' is checked again by 'jaxaudit verify'; "
    "'by construction' means that the software made the runs that way; 'the auditor' means that the "
    "software cannot see it, so that whoever ran the audit answers for it."
)


def _conditions(report: "AuditReport") -> Table:
    return Table(("condition", "how it is met", "who vouches"), tuple(condition_rows(report)))


def _design(report: "AuditReport") -> list[Block]:
    rows = [
        (method.title, str(chosen.num_guesses), f"{chosen.temperature:g}", _or_dash(chosen.threshold))
        for method in report.methods
        for chosen in [method.analysis.selection]
    ]
    return [
        Table(("declared beforehand", "value"), _items(report.design.as_dict())),
        Text(
            "What is open there (null) was fixed on the calibration runs, before the audited runs were "
            "looked at:"
        ),
        Table(("method", "guesses per run r", "temperature", "threshold"), tuple(rows)),
    ]


def _or_dash(value: object) -> str:
    return "-" if value is None else str(value)


def _items(values: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (str(key), value if isinstance(value, str) else json.dumps(plain(value)))
        for key, value in values.items()
    )


def _provenance(report: "AuditReport") -> tuple[Block, ...]:
    return (
        Text("Recompute every statistical number from evidence.npz and check the conditions:"),
        Code("jaxaudit verify DIR"),
        Text("Accuracies and timings are not recomputed: they need the models."),
        Warn(PRIVACY_WARNING),
        Table(("data", "value"), _items(report.data)),
        Table(("provenance", "value"), _items(report.provenance)),
        Table(("cost", "value"), _items({k: v for k, v in report.timings.items() if k != "phases"})),
        *_phases(report),
        Text("Everything that is needed to repeat the audit:"),
        Code(json.dumps(plain(report.spec, "spec"), indent=2, ensure_ascii=False)),
    )


_PHASE = {
    "from_store": "runs from the store",
    "runs": "runs computed",
    "strategy": "strategy",
    "runs_at_once": "runs at once",
    "seconds": "seconds",
    "runs_per_second": "runs/s",
    "steps_per_second": "steps/s",
    "flops_per_second": "FLOP/s",
    "share_of_peak": "share of the float32 matrix-product peak",
}


def _phases(report: "AuditReport") -> tuple[Block, ...]:
    """How each computation over all runs was carried out."""
    phases = report.timings.get("phases") or []
    rows = tuple((phase["name"], *(_brief(phase.get(key)) for key in _PHASE)) for phase in phases)
    return (Table(("computation", *_PHASE.values()), rows),) if rows else ()


def _brief(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else _or_dash(value)
