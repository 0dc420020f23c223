"""The page of `pistol_epsilon.py`: epsilon beside the deviation score, by method, graph and edge."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from pistol_epsilon_checks import PointResult, checks_of, relation_of, share, summary, title
from pistol_page import Page

from jaxaudit.report.blocks import Section, Table, Text, Warn
from jaxaudit.study import EdgeAudit, RateChoice, look_plan, looks_of
from jaxaudit.study.edgespec import SCORE_DEFINITION
from jaxaudit.study.figures import draw_epsilon
from jaxaudit.study.page import rates_table

HOW_TO_READ = (
    "Every run learns the retained edges and half of the candidates (drawn at random, the sign vector), and then "
    "forgets that half. The attacker sees the score of every question of every candidate, one number each, and guesses "
    f"which half it was; the score is the {SCORE_DEFINITION}. Per question one Gaussian is fitted to the calibration "
    "runs that learnt the edge and one to the others; the number of guesses is chosen on calibration runs alone. "
    "Epsilon is the direct bound from the number of right guesses in the audited runs, at delta = 0: with a smaller "
    "epsilon, so many right guesses would be less probable than the significance. 0 means no evidence that anything is "
    "left; the ceiling is what perfect guesses would give.",
    "Each row is looked at several times: with all questions, with exclusive ones (no retained edge has the answer) "
    "and with shared ones (a retained edge has the answer, an address, too), and by the joint predictor where there "
    "are few candidates. Every look has an equal share of the significance of 0.05, so that all looks at a row hold "
    "together. Rows are claims about different methods, each at its own level.",
    "Exact retraining learns the retained edges only, in as many updates. It draws no random number and does not "
    "depend on the sign vector, so one model stands for all runs, its scores are the same in every run, and epsilon is "
    "0.",
    "Forget and retain are ROUGE-1 recall of greedy answers in the first audited runs: of the questions that a run "
    "learnt and forgot, and of the retained edges. The deviation score (DS) is 100 times the distance of the two means "
    "from (0, 1); beside it stands that of retraining on the same questions.",
)


def build(results: Sequence[PointResult]) -> Page:
    """Table, figure, checks."""
    pairs = [(result, one) for result in results for one in result.methods]
    relation = relation_of(pairs)
    return Page(
        name="epsilon",
        title="PISTOL: a lower bound on epsilon for every method",
        script="pistol_epsilon.py",
        summary=summary(results, pairs, relation),
        sections=(
            Section("Epsilon", (epsilon_table(results),)),
            Section("By what the attacker may see", (looks_table(results),)),
            Section(
                "Which edges leak",
                (
                    Text(
                        "Share of audited runs in which an edge is on the right side if all edges are guessed (chance: "
                        "0.5), mean over the edges of a degree; no bound follows from it."
                    ),
                    degrees_table(results),
                ),
            ),
            Section("Learning rates", (Text(_RATES), *_rates(results))),
            Section("How to read it", tuple(map(Text, HOW_TO_READ))),
            conditions(results),
        ),
        checks=checks_of(results, pairs, relation),
        figures={
            "scores": (
                draw_epsilon(_drawn(results), {one.row: title(one.row) for one in results[0].rows.values()}),
                "Epsilon as a share of the ceiling, against the deviation score (left) and against the mean degree of "
                "the candidates in the graphs of equal size (right).",
            )
        },
        document={
            "spec": asdict(results[0].audit.spec),
            **{result.name: _document(result) for result in results},
        },
        warnings=_warnings(results),
    )


_RATES = (
    "Chosen on a run that is not audited, with another seed and sign vector. Forget is the share of tokens "
    "of exclusive forgotten answers that come first, given the true ones before them; retain the share of retained "
    "answers all of whose tokens do. A rate is allowed if enough of the retained answers stays known (at least "
    "min_utility of those known before), and of the allowed ones the one that forgets most is taken. Strong is the "
    "smallest rate after which forget is at most that of exact retraining, whatever else is lost: there a rate is "
    "allowed by forget."
)


def epsilon_table(results: Sequence[PointResult]) -> Table:
    """The main table: a row per graph and method."""
    header = (
        "graph",
        "method",
        "epsilon",
        "ceiling",
        "right guesses",
        "forget",
        "retain",
        "DS",
        "DS retrained",
        "distance",
    )
    rows = [
        (
            result.point.title,
            title(one.row),
            f"{one.epsilon:.2f}",
            f"{one.headline.ceiling:.2f}",
            f"{np.mean(one.headline.overlaps):.1f} of {one.headline.direct.num_guesses}",
            f"{one.forget:.3f}",
            f"{one.retain:.3f}",
            f"{one.deviation.score:.1f}",
            f"{one.deviation.retrained_score:.1f}",
            f"{one.deviation.distance:.1f}",
        )
        for result in results
        for one in result.rows.values()
    ]
    return Table(header, tuple(rows))


def looks_table(results: Sequence[PointResult]) -> Table:
    """Epsilon of every look, empty where a graph does not have it."""
    names = list(
        dict.fromkeys(look.name for result in results for look in next(iter(result.rows.values())).analyses)
    )
    rows = []
    for result in results:
        for one in result.rows.values():
            found = {look.name: f"{analysis.epsilon:.2f}" for look, analysis in one.analyses.items()}
            rows.append((result.point.title, title(one.row), *(found.get(name, "") for name in names)))
    return Table(("graph", "method", *names), tuple(rows))


def degrees_table(results: Sequence[PointResult]) -> Table:
    """Mean success per graph and degree of the edge."""
    names = list(results[0].rows)
    rows = []
    for result in results:
        degrees = result.audit.candidates.degrees
        for degree in sorted(set(degrees.tolist())):
            chosen = degrees == degree
            cells = [f"{result.rows[name].edge_success[chosen].mean():.2f}" for name in names]
            rows.append((result.point.title, str(degree), str(int(chosen.sum())), *cells))
    return Table(("graph", "degree", "edges", *map(title, names)), tuple(rows))


def _rates(results: Sequence[PointResult]) -> list[Any]:
    blocks: list[Any] = []
    for result in results:
        choices = result.audit.rates()
        blocks += [Text(result.point.title), _rates_table(choices)]
        for text, names in (
            ("No rate is allowed", [name for name, one in choices.items() if not one.met]),
            ("At an end of what was tried", [name for name, one in choices.items() if one.at_end]),
        ):
            blocks += [Warn(f"{text}: {', '.join(map(title, names))}.")] if names else []
    return blocks


def _rates_table(choices: Mapping[str, RateChoice]) -> Table:
    """Every rate that was tried; with the name of the variant."""
    table = rates_table(choices)
    names = [title(variant) for variant, choice in choices.items() for _ in choice.tried]
    return Table(table.header, tuple((name, *row[1:]) for name, row in zip(names, table.rows)))


def conditions(results: Sequence[PointResult]) -> Section:
    """Settings, and what each graph is."""
    spec = results[0].audit.spec
    graphs = [
        (
            result.point.title,
            str(len(result.audit.questions.data.entities)),
            str(result.audit.candidates.num_groups),
            str(len(result.audit.candidates.retained)),
            f"{result.audit.candidates.degrees.mean():.1f}",
            f"{result.audit.candidates.shared.mean():.1%}",
            ", ".join(result.audit.candidates.edges),
            f"{_look_ceiling(result):.2f}",
        )
        for result in results
    ]
    header = (
        "graph",
        "entities",
        "candidates",
        "retained",
        "mean degree",
        "shared questions",
        "candidates are",
        "ceiling",
    )
    settings = [
        (
            "runs",
            f"{spec.num_calibration_runs} to calibrate, {spec.num_audit_runs} audited, {spec.num_measured} measured",
        ),
        ("model", results[0].audit.questions.model.description or results[0].audit.questions.model.name),
        *((name, str(value)) for name, value in vars(spec.study).items()),
    ]
    return Section(
        "Model, graphs and settings",
        (Table(header, tuple(graphs)), Table(("what", "value"), tuple(settings))),
    )


def _look_ceiling(result: PointResult) -> float:
    audit = result.audit
    looks = len(looks_of(audit.candidates, audit.spec))
    return look_plan(audit.candidates.num_groups, audit.spec, looks).ceiling


def _warnings(results: Sequence[PointResult]) -> tuple[Warn, ...]:
    """Whatever a row's analysis says that a reader must see, but for what is expected of retraining."""
    found = []
    for result in results:
        for one in result.rows.values():
            notes = dict.fromkeys(note for analysis in one.analyses.values() for note in analysis.notes)
            failed = [note for note in notes if note.startswith("failed") or "worse than chance" in note]
            found += [Warn(f"{result.point.title}, {title(one.row)}: {note}.") for note in failed]
    return tuple(found)


def _drawn(results: Sequence[PointResult]) -> dict[str, dict[str, Any]]:
    return {
        result.point.title: {
            "degree": float(result.audit.candidates.degrees.mean()) if result.point.density else None,
            "rows": {name: (one.deviation.score, share(one)) for name, one in result.rows.items()},
        }
        for result in results
    }


def _document(result: PointResult) -> dict[str, Any]:
    audit = result.audit
    return {
        "title": result.point.title,
        "candidates": list(audit.candidates.edges),
        "retained": list(audit.candidates.retained),
        "degrees": audit.candidates.degrees.tolist(),
        "shared_questions": audit.candidates.shared.sum(axis=1).tolist(),
        "design": audit.design.as_dict(),
        "measured_runs": list(audit.measured_runs),
        "rates": {method: choice.document() for method, choice in audit.rates().items()},
        "rows": [one.document() for one in result.rows.values()],
        "scores": {name: _score_summary(audit, name) for name in result.rows},
        "seconds": audit.seconds(),
    }


def _score_summary(audit: EdgeAudit, row: str) -> dict[str, float]:
    """Mean score per question of edges that the run learnt and of others, over runs that did not fail."""
    scored = audit.scored(row)
    if scored.failed.all():
        return {"failed": float(scored.failed.sum())}
    scores, learnt = scored.scores[~scored.failed], audit.signs[~scored.failed] == 1
    return {
        "learnt": float(scores[learnt].mean()),
        "others": float(scores[~learnt].mean()),
        "failed": float(scored.failed.sum()),
    }
