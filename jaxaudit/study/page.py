"""Tables of a study, as blocks of a report: outcomes, what was broken down, rates that were tried, conditions."""

from collections.abc import Mapping, Sequence
from typing import Any

from jaxaudit.metrics import Interval
from jaxaudit.report.blocks import Section, Table, Text, Warn
from jaxaudit.study.outcome import Outcome
from jaxaudit.study.rates import RateChoice
from jaxaudit.study.settings import SHORT_NAMES
from jaxaudit.study.study import Study

_BASELINES = {
    "base": "base (never saw the data)",
    "before": "before unlearning",
    "retrained": "retrained without the edge",
}
BASELINES = tuple(_BASELINES)
"""Models that every method is compared with."""
HOW_TO_READ = (
    "Recall is ROUGE-1 recall of greedy answers, mean over questions and models. The deviation score (DS) is 100 times "
    "the distance of (forget recall, retain recall) from (0, 1), of the means. Zero is not the goal: who never saw the "
    "edge still guesses part of its answers, and some of them, addresses, are legitimately retained. So every row "
    "stands beside models that were retrained without the edge, with the same seeds: the excess is the DS minus "
    "theirs (below 0: less is known than retraining leaves, which is over-forgetting and itself a trace), the distance "
    "is 100 times the distance of the two pairs of means. Intervals are 95 % bootstrap intervals over questions and "
    "models.",
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
    if method in _BASELINES:
        return _BASELINES[method]
    short = SHORT_NAMES.get(method, method)
    return f"{short} ({method})" if short == "DPO" else short


def with_interval(found: Interval, digits: int = 1) -> str:
    """A number and its interval.

    Examples
    --------
    >>> with_interval(Interval(54.36, 50.0, 58.72, 0.95, "both", "bootstrap"))
    '54.4 (50.0, 58.7)'
    """
    return f"{found.estimate:.{digits}f} ({found.low:.{digits}f}, {found.high:.{digits}f})"


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
            f"{one.deviation.distance:.1f}",
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
    hops = sorted(part for part in known if part.endswith(("hop", "hops")))
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


def rates_table(choices: Mapping[str, RateChoice]) -> Table:
    """Every rate that was tried."""
    rows = [
        (
            method_title(method),
            f"{one.rate:g}",
            f"{one.forget:.3f}",
            f"{one.retain:.3f}",
            "yes" if one.allowed else "no",
            "chosen" if one.rate == choice.rate else "",
        )
        for method, choice in choices.items()
        for one in choice.tried
    ]
    return Table(("method", "rate", "forget (exclusive)", "retain", "allowed", ""), tuple(rows))


def rates_section(study: Study, choices: Mapping[str, RateChoice], edges: Sequence[str]) -> Section:
    """How the learning rates were chosen."""
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
    spec, model, data = study.spec, study.questions.model, study.data
    rows = [
        ("model", model.description or model.name),
        ("data", f"{len(data.entities)} entities, {len(data.edges)} edges, {len(data.records)} questions"),
        ("reading", spec.reading),
        *((name, str(value)) for name, value in vars(spec).items() if name != "reading"),
    ]
    return Section("Model, data and settings", (Table(("what", "value"), tuple(rows)),))


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
