"""Tables of a study, as blocks of a report: outcomes, what was broken down, rates that were tried, conditions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxaudit.metrics import Interval
from jaxaudit.report.blocks import Section, Table, Text, Warn
from jaxaudit.study.models import Case, Study
from jaxaudit.study.outcome import BASELINES, Outcome
from jaxaudit.study.rates import RateChoice
from jaxaudit.study.settings import SHORT_NAMES

_BASELINE_TITLES = dict(
    zip(BASELINES, ("base (never saw the data)", "before unlearning", "retrained without the edge"))
)
REMEMBERED = 0.99
"""Recall before unlearning, below which nothing can be said about unlearning."""
HOW_TO_READ = (
    "Recall is ROUGE-1 recall of greedy answers, mean over questions and models. The deviation score (DS) is 100 times "
    "the distance of (forget recall, retain recall) from (0, 1), of the means. Zero is not the goal: who never saw the "
    "edge still guesses part of its answers, and some of them, addresses, are legitimately retained. So every row "
    "stands beside models that were retrained without the edge, with the same seeds: the excess is the DS minus "
    "theirs (below 0: less is known than retraining leaves, which is over-forgetting and itself a trace), the distance "
    "is 100 times the distance of the two pairs of means. Noise alone makes it positive, "
    "and its interval lies too high, so that it need not hold the estimate. What to measure it by is the last but one "
    "column: the mean distance between a model and a retrained model of another seed, and in the row of the retrained "
    "models that between two of them, the floor.",
    "Intervals are 95 % bootstrap intervals over seeds, edges (if several are taken together) and questions, each "
    "resampled as a whole, because models of one seed share a fine-tuned model and models of one edge share questions. "
    "With as few as three seeds and three edges they are too short: they cover the true value less often than in 95 % "
    "of cases.",
    "All retained questions are evaluated. Exclusive are the forget questions whose answer is in the forgotten edge "
    "only; shared are those whose answer, an address, other retained edges have, too. Empty counts answers to forget "
    "questions without any text. Hops are counted between edges in the line graph: 1 hop is an edge with a common "
    "entity.",
)


def method_title(method: str) -> str:
    """What a reader sees.

    Examples
    --------
    >>> method_title("idk"), method_title("before")
    ('DPO (idk)', 'before unlearning')
    """
    if method in _BASELINE_TITLES:
        return _BASELINE_TITLES[method]
    short = SHORT_NAMES.get(method, method)
    return f"{short} ({method})" if short == "DPO" else short


def with_interval(found: Interval, digits: int = 1) -> str:
    """A number and its interval.

    Examples
    --------
    >>> with_interval(Interval(54.36, 50.0, 58.72, 0.95, "both", "bootstrap"))
    '54.4 (50.0, 58.7)'
    >>> with_interval(Interval(-0.01, -0.5, 0.0, 0.95, "both", "bootstrap"))
    '0.0 (-0.5, 0.0)'
    """
    # Adding 0 turns a rounded -0.0 into 0.0.
    estimate, low, high = (round(value, digits) + 0.0 for value in (found.estimate, found.low, found.high))
    return f"{estimate:.{digits}f} ({low:.{digits}f}, {high:.{digits}f})"


def outcome_table(outcomes: Mapping[str, Sequence[Outcome]]) -> Table:
    """The main table: a row per group of edges and method.

    Parameters
    ----------
    outcomes
        By what the group is called.
    """
    header = (
        "forgotten",
        "method",
        "forget",
        "exclusive",
        "shared",
        "retain",
        "DS",
        "excess",
        "distance",
        "between seeds",
        "empty",
    )
    rows = [
        (
            name,
            method_title(one.method),
            _mean(one, "forget"),
            _mean(one, "exclusive"),
            _mean(one, "shared"),
            _mean(one, "retain"),
            with_interval(one.score),
            "" if one.method == "retrained" else with_interval(one.excess),
            "" if one.method == "retrained" else with_interval(one.distance),
            "" if one.distance_between_seeds is None else f"{one.distance_between_seeds:.1f}",
            str(one.num_empty),
        )
        for name, group in outcomes.items()
        for one in group
    ]
    return Table(header, tuple(rows))


def _mean(one: Outcome, part: str, measure: str = "recall") -> str:
    value = one.mean(part, measure)
    return "" if value is None else f"{value:.3f}"


def parts_table(outcomes: Mapping[str, Sequence[Outcome]], measure: str = "recall") -> Table:
    """A measure over every part of the retained questions: by distance, by domain, and the first 200."""
    groups = [one for group in outcomes.values() for one in group]
    known = dict.fromkeys(part for one in groups for part in one.parts)
    hops = sorted(
        (part for part in known if part.endswith(("hop", "hops"))), key=lambda part: int(part.split()[0])
    )
    domains = sorted(part for part in known if part.startswith("retain "))
    columns = [*hops, *(part for part in ("disconnected",) if part in known), *domains, "first 200"]
    rows = [
        (name, method_title(one.method), *(_mean(one, part, measure) for part in columns))
        for name, group in outcomes.items()
        for one in group
    ]
    return Table(("forgotten", "method", *columns), tuple(rows))


def ranks_table(outcomes: Mapping[str, Sequence[Outcome]], free_running: bool = False) -> Table:
    """Mean reciprocal rank and top-hit ratio of forget and retain answers."""
    prefix = "free " if free_running else ""
    measures = (f"{prefix}reciprocal rank", f"{prefix}top hits")
    columns = [(part, measure) for measure in measures for part in ("forget", "retain")]
    header = (
        "MRR forget",
        "MRR retain",
        "THR forget",
        "THR retain",
        "first token hits forget",
        "empty answers",
    )
    rows = [
        (
            name,
            method_title(one.method),
            *(_mean(one, part, measure) for part, measure in columns),
            _mean(one, "forget", "first hits"),
            f"{one.num_empty} of {one.forget.size}",
        )
        for name, group in outcomes.items()
        for one in group
    ]
    return Table(("forgotten", "method", *header), tuple(rows))


def memory(outcomes: Sequence[Outcome]) -> Float[np.ndarray, " seeds"]:
    """Recall of all questions before unlearning, of every seed; the mean must be at least `REMEMBERED`."""
    before = next(one for one in outcomes if one.method == "before")
    known = np.concatenate([before.forget, before.retain], axis=1)
    return known.reshape(len(before.seeds), -1).mean(axis=1)


def warnings(outcomes: Mapping[str, Sequence[Outcome]]) -> tuple[Warn, ...]:
    """What forbids to read the tables as results about unlearning, if anything does."""
    found = []
    unknown = [name for name, group in outcomes.items() if memory(group).mean() < REMEMBERED]
    if unknown:
        found.append(
            f"Before unlearning, the model does not remember its answers (ROUGE-1 below {REMEMBERED}): "
            f"{', '.join(unknown)}. What follows says nothing about unlearning."
        )
    for what, count_of in (
        ("changed nothing at all", lambda one: one.num_untouched),
        ("ended in parameters that are not finite", lambda one: one.num_diverged),
    ):
        runs = [
            f"{name}, {method_title(one.method)} ({count_of(one)} of {len(one.moved)})"
            for name, group in outcomes.items()
            for one in group
            if count_of(one)
        ]
        if runs:
            found.append(f"Unlearning {what}: {'; '.join(runs)}.")
    return tuple(map(Warn, found))


def rates_table(choices: Mapping[str, RateChoice]) -> Table:
    """Every rate that was tried."""
    rows = [
        (
            method_title(method),
            f"{one.rate:g}",
            f"{one.forget:.3f}",
            f"{one.retain:.3f}",
            "yes" if one.allowed else "no" if one.finite else "diverged",
            "chosen" if one.rate == choice.rate else "",
        )
        for method, choice in choices.items()
        for one in choice.tried
    ]
    return Table(("method", "rate", "forget (exclusive)", "retain", "allowed", ""), tuple(rows))


def rates_section(
    study: Study, choices: Mapping[str, RateChoice], edges: Sequence[str], forgotten: Sequence[str] = ()
) -> Section:
    """How the learning rates were chosen: on ``edges``; results are about ``forgotten``."""
    blocks: list[Any] = [
        Text(
            "Teacher-forced: forget is the share of tokens of exclusive forget answers that come first, retain the "
            "share of retained answers all of whose tokens do, so that greedy generation gives them exactly. On a "
            f"model of its own (seed {study.spec.tuning_seed}), mean over forgetting {', '.join(edges)}. A rate is "
            f"allowed if retain is at least {study.spec.min_utility:.0%} of what it was; of the allowed ones, the one "
            "that forgets most is taken. The paper has such a threshold, and does not state it."
        ),
        rates_table(choices),
    ]
    reported = [edge for edge in edges if edge in forgotten]
    if reported:
        blocks.append(
            Warn(
                f"Rates were chosen on edges that are reported here, too, so these flatter: {', '.join(reported)}."
            )
        )
    unmet = [method_title(method) for method, choice in choices.items() if not choice.met]
    if unmet:
        blocks.append(
            Warn(f"No rate keeps the retained answers: {', '.join(unmet)}; the one that keeps most is taken.")
        )
    at_end = [method_title(method) for method, choice in choices.items() if choice.at_end]
    if at_end:
        blocks.append(
            Warn(f"At an end of what was tried, so that a better rate may lie beyond: {', '.join(at_end)}.")
        )
    return Section("Learning rates", tuple(blocks))


def conditions_section(study: Study) -> Section:
    """Model, data and settings."""
    spec, model = study.spec, study.questions.model
    rows = [
        ("model", model.description or model.name),
        ("prompt", repr(model.template)),
        ("data", study.questions.description),
        *((name, str(value)) for name, value in vars(spec).items()),
    ]
    tokens = study.questions.tokens.tokens
    asked = Text(
        f"Question and answer take {tokens.real.sum(axis=1).mean():.1f} tokens on average, of which the answer "
        f"{tokens.answer.sum(axis=1).mean():.1f}; {tokens.ids.shape[1]} with padding, which is left out where that "
        "saves a tenth."
    )
    note = Text(
        "Adapters of unlearning have no dropout, where the authors' code has 0.05. Models of all seeds start from the "
        "same pretrained parameters; seeds differ in the order of the questions and in the adapters of unlearning, "
        "which are the same for all methods and rates."
    )
    return Section("Model, data and settings", (Table(("what", "value"), tuple(rows)), asked, note))


_SAMPLES = {"exclusive": 2, "shared": 1, "retain": 1}
"""Questions of each part whose answers are shown."""


def samples_section(study: Study, edges: Sequence[str], rates: Mapping[str, float]) -> Section:
    """Some questions of each edge, and what the models of the first seed answer before and after unlearning.

    Parameters
    ----------
    study
        Whose models are all made.
    edges
        That were forgotten, one at a time.
    rates
        Learning rate of every method.
    """
    seed, questions = study.spec.seeds[0], study.questions
    rows = []
    for edge in edges:
        models = {
            "before": Case("before", seed),
            "retrained": Case("retrained", seed, edge),
            **{method: Case("unlearned", seed, edge, method, rate) for method, rate in rates.items()},
        }
        answers = {method: study.result(case)["text"] for method, case in models.items()}
        parts = questions.parts(edge)
        for part, count in _SAMPLES.items():
            for row in np.flatnonzero(parts.get(part, ()))[:count]:
                asked = (edge, part, questions.questions[row])
                rows.append((*asked, "true answer", questions.answers[row]))
                rows += [
                    ("", "", "", method_title(method), str(texts[row])) for method, texts in answers.items()
                ]
    text = Text(
        f"The first questions of each part, answered by the models of seed {seed}; nothing is picked."
    )
    return Section(
        "Samples", (text, Table(("forgotten", "part", "question", "model", "answer"), tuple(rows)))
    )


def reading_section() -> Section:
    """What the columns mean."""
    return Section("How to read it", tuple(Text(text) for text in HOW_TO_READ))


def text_table(table: Table) -> str:
    """For a terminal.

    Examples
    --------
    >>> print(text_table(Table(("a", "b"), (("1", "22"),))))
    a  b
    -----
    1  22
    """
    lines = [table.header, *table.rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.header))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    return "\n".join([text[0], "-" * max(map(len, text)), *text[1:]])
