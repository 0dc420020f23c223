"""The page of `pistol_epsilon.py`: epsilon beside the deviation score, by method, graph and edge."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from pistol_epsilon_checks import (
    CONTROL,
    PointResult,
    checks_of,
    pairs_of,
    relations_of,
    summary,
    title,
)
from pistol_page import Page

from jaxaudit.analysis import Analysis
from jaxaudit.report.blocks import Section, Table, Text, Warn
from jaxaudit.study import BEFORE, SCORE_DEFINITION, RateChoice, look_document
from jaxaudit.study.figures import draw_epsilon
from jaxaudit.study.page import rates_table, with_interval

FAILED = "failed"
"""In place of a number that would be 0 because no audited run came to a result."""
MANY_RUNS = 20
"""Calibration runs, below which a page says what a design cannot show."""
_OF_GRAPH = ("epochs", "seeds", "tuning_seed")
"""Settings that differ between graphs."""
_HOW_TO_READ = (
    "Every run learns the retained edges and half of the candidates (drawn at random, the sign vector), and then "
    "forgets that half. The attacker sees the score of every question of every candidate, one number each, and guesses "
    "which half it was; the score is the {score}. By the batchwise predictor, per question one Gaussian is fitted to "
    "the calibration runs that learnt the edge and one to the others, with one variance; by the joint one, one to the "
    "runs of every sign vector, of which there are few enough for all to be calibrated: without unlearning, runs with "
    "the same sign vector are the same model, and its guess is a look into a table. The number of guesses is chosen on "
    "calibration runs alone. "
    "Epsilon is the direct bound from the number of right guesses in the audited runs, at delta = 0: with a smaller "
    "epsilon, so many right guesses would be less probable than the significance. 0 means no evidence that anything is "
    "left; the ceiling is what perfect guesses would give.",
    "Each row is looked at several times: with all questions, with shared ones (addresses of entities that have a "
    "retained contract, too), with the others, called exclusive (values of few kinds, such as a percentage, may recur "
    "among the retained answers by chance), and by the joint predictor where there are few candidates. Every look has "
    "an equal share of the significance of {significance:g}, so that all looks at a row hold together. Rows are claims "
    "about different methods, each at its own level. r is the number of guesses, the share epsilon divided by the "
    "ceiling, which is that of guessing every edge.",
    "Exact retraining learns the retained edges only, in as many updates. It draws no random number and does not "
    "depend on the sign vector, so one model stands for all runs, its scores are the same in every run, and epsilon is "
    "0 by construction; it is there for its ROUGE-1. What can fail is the control: the scores without unlearning, "
    "attacked with other sign vectors, drawn anew, about which they know nothing. There epsilon is 0, but for a false "
    "alarm with a probability of at most the significance.",
    "Forget and retain are ROUGE-1 recall of greedy answers in the first audited runs: of the questions that a run "
    "learnt and forgot, and of the retained edges. The deviation score (DS) is 100 times the distance of the two means "
    "from (0, 1), with a rough 95 % bootstrap interval over these runs and their questions, which are few (of exact "
    "retraining, of which there is one model, over questions alone); beside it stand "
    "that of retraining on the same questions and the distance of the two pairs of means.",
    "Graphs have seeds of their own: values, candidates, sign vectors, order and noise. Methods of one graph share its "
    "fine-tuned models.",
)


def build(results: Sequence[PointResult]) -> Page:
    """Table, figure, checks."""
    pairs = pairs_of(results)
    return Page(
        name="epsilon",
        title="PISTOL: a lower bound on epsilon for every method",
        script="pistol_epsilon.py",
        summary=summary(results, pairs),
        sections=(
            Section("Epsilon", (epsilon_table(results),)),
            Section("Scores", (Text(_SCORES), scores_table(results))),
            Section("By what the attacker may see", (Text(_LOOKS), looks_table(results))),
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
            Section("How to read it", how_to_read(results[0].audit.spec.significance)),
            conditions(results),
            Section("Seconds", (Text(_SECONDS), seconds_table(results))),
        ),
        checks=checks_of(results, pairs),
        figures={
            "scores": (
                draw_epsilon(_drawn(results), {one.row: title(one.row) for one in results[0].rows.values()}),
                "Epsilon as a share of the ceiling, against the deviation score (left) and against the mean degree of "
                "the candidates in the graphs of equal size (right).",
            )
        },
        document={
            "relations": {name: found.text for name, found in relations_of(pairs).items()},
            **{result.name: _document(result) for result in results},
        },
        warnings=_warnings(results),
    )


def how_to_read(significance: float) -> tuple[Text, ...]:
    """What the columns mean."""
    return tuple(Text(one.format(score=SCORE_DEFINITION, significance=significance)) for one in _HOW_TO_READ)


_RATES = (
    "Chosen on a run that is not audited, with another seed and sign vector. Forget is the share of tokens "
    "of exclusive forgotten answers that come first, given the true ones before them; retain the share of retained "
    "answers all of whose tokens do. A rate is allowed if enough of the retained answers stays known (at least "
    "min_utility of those known before), and of the allowed ones the one that forgets most is taken. Strong is the "
    "smallest rate after which forget is at most that of exact retraining, whatever else is lost: there a rate is "
    "allowed by forget. A rate at which the model diverged is never allowed."
)
_LOOKS = (
    "Of every look the direct bound, which is valid for all looks at a row together, at the level of one look; beside "
    "it, at the same level, the bound of the paper (Theorem 4.2, mean overlap) on the same guesses, the bound by soft "
    "evidence, and the area under the ROC curve of all pairs of run and edge (0.5 is chance), from which no bound "
    "follows. Which of the bounds counts was decided beforehand: the direct one."
)
_SCORES = (
    "Mean score of a question (log-likelihood of its true answer, in nats) over all runs: of edges that the run learnt "
    "and then forgot, and of the other candidates, which it never saw. Retraining never saw any of them. AUC of the "
    "shared and of the exclusive address of edges that have one of either (0.5 is chance)."
)
_SECONDS = (
    "Wall time of all that was made, in whatever session: fine-tuning of the runs; choosing rates; and of every row "
    "what comes on top: unlearning, answers of the measured runs, scores. A row at the rate of one before it takes "
    "none."
)


def epsilon_table(results: Sequence[PointResult]) -> Table:
    """The main table: a row per graph and method."""
    header = (
        *("graph", "method", "rate", "epsilon", "ceiling", "share", "r", "right guesses"),
        *("forget", "retain", "DS", "DS retrained", "distance"),
    )
    rows = []
    for result in results:
        for one in result.rows.values():
            rows.append(
                (
                    result.point.title,
                    title(one.row),
                    f"{one.rate:g}" if one.rate else "",
                    *_bound_cells(one.headline, one.ceiling, one.all_failed),
                    f"{one.forget:.3f}",
                    f"{one.retain:.3f}",
                    with_interval(one.score),
                    f"{one.deviation.retrained_score:.1f}",
                    f"{one.deviation.distance:.1f}",
                )
            )
        control = next(iter(result.control.values()))
        cells = _bound_cells(control, result.ceiling, failed=False)
        rows.append((result.point.title, CONTROL, "", *cells, "", "", "", "", ""))
    return Table(header, tuple(rows))


def _bound_cells(found: Analysis, ceiling: float, failed: bool) -> tuple[str, ...]:
    """Epsilon, ceiling, share, r, right guesses."""
    if failed:
        return (FAILED, f"{ceiling:.2f}", "", "", "")
    share = found.epsilon / ceiling if ceiling > 0 else 0.0
    guesses = found.direct.num_guesses
    right = f"{np.mean(found.overlaps):.1f} of {guesses}"
    return (f"{found.epsilon:.2f}", f"{ceiling:.2f}", f"{share:.2f}", str(guesses), right)


def scores_table(results: Sequence[PointResult]) -> Table:
    """Mean scores of learnt and of other edges, and what the two kinds of questions tell."""
    rows = [
        (
            result.point.title,
            title(one.row),
            FAILED if one.all_failed else f"{one.learnt:.2f}",
            FAILED if one.all_failed else f"{one.others:.2f}",
            *(f"{one.matched[kind]:.2f}" if kind in one.matched else "" for kind in ("shared", "exclusive")),
        )
        for result in results
        for one in result.rows.values()
    ]
    header = ("graph", "method", "learnt", "others", "AUC shared", "AUC exclusive")
    return Table(header, tuple(rows))


def looks_table(results: Sequence[PointResult]) -> Table:
    """Every look at every row, and at the control."""
    rows = []
    for result in results:
        for one in result.rows.values():
            for look, found in one.analyses.items():
                rows.append(
                    (result.point.title, title(one.row), look.name, *_look_cells(found, one.all_failed))
                )
        for look, found in result.control.items():
            rows.append((result.point.title, CONTROL, look.name, *_look_cells(found, failed=False)))
    header = ("graph", "method", "look", "direct", "paper", "soft", "r", "right guesses", "AUC", "level")
    return Table(header, tuple(rows))


def _look_cells(found: Analysis, failed: bool) -> tuple[str, ...]:
    level = f"{found.direct.significance:.4f}"
    if failed:
        return (FAILED, "", "", "", "", "", level)
    return (
        f"{found.direct.epsilon:.2f}",
        f"{found.paper.epsilon:.2f}",
        f"{found.soft.epsilon:.2f}",
        str(found.direct.num_guesses),
        f"{np.mean(found.overlaps):.1f}",
        f"{found.leakage.roc_auc:.2f}",
        level,
    )


def seconds_table(results: Sequence[PointResult]) -> Table:
    """Wall seconds by graph and part."""
    parts = {result.point.title: result.audit.seconds() for result in results}
    names = list(next(iter(parts.values())))
    rows = [
        (graph, *(f"{own[name]:.0f}" for name in names), f"{sum(own.values()):.0f}")
        for graph, own in parts.items()
    ]
    shown = (title(name) if name in results[0].rows else name for name in names)
    return Table(("graph", *shown, "together"), tuple(rows))


def degrees_table(results: Sequence[PointResult]) -> Table:
    """Mean success per graph and degree of the edge."""
    names = list(results[0].rows)
    rows = []
    for result in results:
        degrees = result.audit.candidates.degrees
        for degree in sorted(set(degrees.tolist())):
            chosen = degrees == degree
            cells = [
                FAILED if one.all_failed else f"{one.edge_success[chosen].mean():.2f}"
                for one in (result.rows[name] for name in names)
            ]
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
    header = (
        *("graph", "entities", "candidates", "retained", "mean degree", "shared questions", "candidates are"),
        *("ceiling", "updates", "passes", "seed"),
    )
    graphs = [
        (
            result.point.title,
            str(len(result.audit.questions.data.entities)),
            str(result.audit.candidates.num_groups),
            str(len(result.audit.candidates.retained)),
            f"{result.audit.candidates.degrees.mean():.1f}",
            f"{result.audit.candidates.shared.mean():.1%}",
            ", ".join(result.audit.candidates.edges),
            f"{result.ceiling:.2f}",
            str(result.audit.num_updates),
            str(result.audit.spec.study.epochs),
            str(result.audit.seed),
        )
        for result in results
    ]
    note = Text(
        "Updates are those of unlearning, and passes those over the questions that are forgotten: with fewer questions "
        "there are more passes, so that the numbers of updates agree. Warm-up takes as long as the reading says, in "
        "the paper's one pass."
    )
    own = {name: value for name, value in vars(spec.study).items() if name not in _OF_GRAPH}
    settings = [
        (
            "runs",
            f"{spec.num_calibration_runs} to calibrate, {spec.num_audit_runs} audited, {spec.num_measured} measured",
        ),
        ("model", results[0].audit.questions.model.description or results[0].audit.questions.model.name),
        ("methods", ", ".join(spec.chosen_methods)),
        *((name, str(value)) for name, value in own.items()),
    ]
    return Section(
        "Model, graphs and settings",
        (Table(header, tuple(graphs)), note, Table(("what", "value"), tuple(settings))),
    )


def _warnings(results: Sequence[PointResult]) -> tuple[Warn, ...]:
    """Whatever a row's analysis says that a reader must see, but for what is expected of retraining."""
    spec, found = results[0].audit.spec, []
    if spec.num_calibration_runs < MANY_RUNS:
        ceilings = ", ".join(f"{result.ceiling:.2f}" for result in results)
        found.append(
            f"With {spec.num_calibration_runs} runs to calibrate, every Gaussian is fitted to about "
            f"{spec.num_calibration_runs // 2} scores, and {spec.num_audit_runs} audited runs can show an epsilon of "
            f"at most {ceilings}. An epsilon of 0 is then no sign that anything was forgotten; one above 0 is as valid "
            f"as in a larger design. ROUGE-1 is that of {spec.num_measured} run(s)."
        )
    for result in results:
        for one in result.rows.values():
            name = f"{result.point.title}, {title(one.row)}"
            notes = dict.fromkeys(note for analysis in one.analyses.values() for note in analysis.notes)
            # Among the many looks at all rows a few are worse than chance by chance; without unlearning none may be.
            seen = [
                note
                for note in notes
                if note.startswith(("failed", "too many"))
                or (one.row == BEFORE and "worse than chance" in note)
            ]
            found += [f"{name}: {note}." for note in seen]
            if one.num_untouched:
                found.append(f"{name}: unlearning changed nothing at all in {one.num_untouched} runs.")
    return tuple(map(Warn, found))


def _drawn(results: Sequence[PointResult]) -> dict[str, dict[str, Any]]:
    """What failed has no place in the figure."""
    return {
        result.point.title: {
            "degree": float(result.audit.candidates.degrees.mean()) if result.point.density else None,
            "rows": {
                name: (one.deviation.score, float("nan") if one.all_failed else one.share)
                for name, one in result.rows.items()
            },
        }
        for result in results
    }


def _document(result: PointResult) -> dict[str, Any]:
    audit = result.audit
    return {
        "title": result.point.title,
        "spec": asdict(audit.spec),
        "candidates": list(audit.candidates.edges),
        "retained": list(audit.candidates.retained),
        "degrees": audit.candidates.degrees.tolist(),
        "shared_questions": audit.candidates.shared.sum(axis=1).tolist(),
        "design": audit.design.as_dict(),
        "ceiling": result.ceiling,
        "updates": audit.num_updates,
        "measured_runs": list(audit.measured_runs),
        "rates": {method: choice.document() for method, choice in audit.rates().items()},
        "rows": [one.document() for one in result.rows.values()],
        "control": {look.name: look_document(found) for look, found in result.control.items()},
        "seconds": audit.seconds(),
    }
