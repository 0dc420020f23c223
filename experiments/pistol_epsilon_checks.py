"""What was expected of `pistol_epsilon.py`, and what the numbers say."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from pistol_epsilon_points import Point
from pistol_page import Check

from jaxaudit.analysis import Analysis
from jaxaudit.metrics import Interval
from jaxaudit.study import (
    BEFORE,
    MIN_CLUSTERS,
    RETRAINED,
    STRONG,
    EdgeAudit,
    EdgeEpsilon,
    Look,
    ceiling_of,
    method_of,
    rank_agreement,
)
from jaxaudit.study.page import REMEMBERED, method_title, with_interval

TITLES = {BEFORE: "no unlearning", RETRAINED: "exact retraining"}
CONTROL = "control: no unlearning, signs drawn anew"
NEAR_CEILING = 0.9
NEAR_RETRAINING = 5.0
"""Distance to retraining, in points of the deviation score, within which a score is called good."""


class PointResult(NamedTuple):
    """One graph."""

    name: str
    point: Point
    audit: EdgeAudit
    rows: Mapping[str, EdgeEpsilon]
    control: Mapping[Look, Analysis]
    """See `jaxaudit.study.control_looks`."""

    @property
    def methods(self) -> list[EdgeEpsilon]:
        """Without the two baselines."""
        return [self.rows[name] for name in self.audit.spec.variants]

    @property
    def ceiling(self) -> float:
        """Largest epsilon that a look can show."""
        return ceiling_of(self.audit.candidates, self.audit.spec)


Pair = tuple[PointResult, EdgeEpsilon]


class Relation(NamedTuple):
    """A rank correlation over pairs of graph and method."""

    estimate: float
    interval: Interval | None
    """Over graphs and methods, crossed; ``None``: there are too few of either."""
    num_pairs: int
    num_graphs: int
    num_methods: int

    @property
    def text(self) -> str:
        """What a reader sees."""
        over = f"{self.num_graphs} graphs and {self.num_methods} methods"
        if self.interval is None:
            return f"{self.estimate:.2f} (no interval, since {over} are fewer than {MIN_CLUSTERS} of either)"
        return f"{with_interval(self.interval, 2)} (rough: over {over}, resampled as wholes)"


def title(row: str) -> str:
    """What a reader sees."""
    return TITLES.get(row) or method_title(method_of(row)) + (STRONG if row.endswith(STRONG) else "")


def pairs_of(results: Sequence[PointResult]) -> list[Pair]:
    """Every method at every rate of every graph once: two rules may choose the same rate; without what failed."""
    found: dict[tuple[str, str, float], Pair] = {}
    for result in results:
        for one in result.methods:
            if not one.all_failed:
                found.setdefault((result.name, method_of(one.row), one.rate), (result, one))
    return list(found.values())


def relation_of(pairs: Sequence[Pair], values: Sequence[float]) -> Relation:
    """Rank correlation of a value of every pair with its epsilon as a share of the ceiling.

    Pairs of one graph share data and fine-tuned models, and those of one method what it does to any graph, so that the
    interval is over graphs and methods.
    """
    shares = [one.share for _, one in pairs]
    factors = [result.point.cluster for result, _ in pairs], [method_of(one.row) for _, one in pairs]
    counts = len(pairs), *(len(set(labels)) for labels in factors)
    if len(pairs) < MIN_CLUSTERS:
        return Relation(0.0, None, *counts)
    enough = min(counts) >= MIN_CLUSTERS
    found = rank_agreement(values, shares, factors=factors if enough else ())
    return Relation(found.estimate, found if enough else None, *counts)


def relations_of(pairs: Sequence[Pair]) -> dict[str, Relation]:
    """Of both ways to judge a method by what it still says."""
    return {
        "deviation score": relation_of(pairs, [one.deviation.score for _, one in pairs]),
        "distance to retraining": relation_of(pairs, [one.deviation.distance for _, one in pairs]),
    }


def summary(results: Sequence[PointResult], pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Sentences that are computed from the numbers."""
    good = [pair for pair in pairs if pair[1].deviation.distance <= NEAR_RETRAINING]
    leaking = sum(one.epsilon > 0 for _, one in good)
    left = "; ".join(
        f"{result.point.title} {sum(one.epsilon > 0 for one in own)} of {len(own)}"
        for result in results
        if (own := [one for other, one in pairs if other is result])
    )
    best = [
        (result, min(own, key=lambda one: one.deviation.distance))
        for result in results
        if (own := [one for one in result.methods if not one.all_failed])
    ]
    shown = "; ".join(
        f"{result.point.title}: {title(one.row)} with DS {one.deviation.score:.1f} (retraining "
        f"{one.deviation.retrained_score:.1f}) and epsilon {one.epsilon:.2f} of at most {one.ceiling:.2f}"
        for result, one in best
    )
    related = "; ".join(f"{name} {found.text}" for name, found in relations_of(pairs).items())
    alarms = sum(one.headline.direct.significance for _, one in pairs)
    return (
        "Methods, each at every chosen rate once, that leave evidence of what was forgotten (epsilon above 0): "
        f"{left}. Those of one graph share its data and fine-tuned models, so that they are no independent trials. If "
        f"nothing were left anywhere, at most {alarms:.1f} of the {len(pairs)} would be expected above 0 by chance.",
        f"Does a good deviation score mean forgotten? {len(good)} of {len(pairs)} come within {NEAR_RETRAINING:g} of "
        f"retraining (distance of the two ROUGE-1 means, times 100, so that over-forgetting is not good either); "
        f"{leaking} of these have an epsilon above 0. Rank correlation with epsilon as a share of its ceiling: "
        f"{related}.",
        f"What comes nearest to retraining in each graph: {shown}.",
    )


def checks_of(results: Sequence[PointResult], pairs: Sequence[Pair]) -> tuple[Check, ...]:
    """Of every graph, of all of them together, by density, and by degree."""
    checks = [check for result in results for check in _graph_checks(result)]
    checks += [
        Check(
            f"a smaller {name} goes with a smaller epsilon",
            "does not show" if found.interval is None else _verdict(found.interval),
            f"rank correlation {found.text}; {found.num_pairs} pairs of graph and method",
        )
        for name, found in relations_of(pairs).items()
    ]
    return (*checks, *_shared_checks(results), *_density_checks(results), *_degree_checks(results))


def _graph_checks(result: PointResult) -> list[Check]:
    before, name = result.rows[BEFORE], result.point.title
    known = min(before.forget, before.retain) >= REMEMBERED
    alarms = [one.epsilon for one in result.control.values()]
    return [
        Check(
            f"{name}: before unlearning, all answers are remembered (ROUGE-1 at least {REMEMBERED})",
            "yes" if known else "NO: what follows says little about unlearning",
            f"forget {before.forget:.3f}, retain {before.retain:.3f}",
        ),
        Check(
            f"{name}: without unlearning, epsilon is at least {NEAR_CEILING:.0%} of the ceiling",
            "yes" if before.share >= NEAR_CEILING else "NO: the attack is weak here",
            "failed"
            if before.all_failed
            else f"epsilon {before.epsilon:.2f} of at most {before.ceiling:.2f}",
        ),
        Check(
            f"{name}: sign vectors that were drawn anew are not recognised (control)",
            "yes"
            if max(alarms) == 0
            else f"NO: a false alarm, as in at most {result.audit.spec.significance:.0%} of graphs",
            f"largest epsilon of {len(alarms)} looks {max(alarms):.2f}",
        ),
    ]


def _verdict(found: Interval) -> str:
    return "shows" if found.low > 0 else "reversed" if found.high < 0 else "does not show"


def _shared_checks(results: Sequence[PointResult]) -> list[Check]:
    """Addresses that retained edges have, too, tell less about what was learnt and forgotten."""
    checks = []
    for result in results:
        rows = [one for one in (result.rows[BEFORE], *result.methods) if one.matched and one.epsilon > 0]
        values = np.array([[one.matched[kind] for kind in ("shared", "exclusive")] for one in rows])
        differ = values[values[:, 0] != values[:, 1]] if len(rows) else np.empty((0, 2))
        if not len(differ):
            continue
        less, edges = int((differ[:, 0] < differ[:, 1]).sum()), result.audit.candidates.matched()["shared"]
        checks.append(
            Check(
                f"{result.point.title}: a shared address tells less than an exclusive one of the same edge",
                "shows" if less == len(differ) else "reversed" if less == 0 else "does not show",
                f"AUC smaller in {less} of the {len(differ)} rows with evidence and a difference, which share the "
                f"{int(edges.any(axis=1).sum())} edges that have both; mean {differ[:, 0].mean():.2f} against "
                f"{differ[:, 1].mean():.2f}",
            )
        )
    return checks


def _density_checks(results: Sequence[PointResult]) -> list[Check]:
    """Graphs of equal size, by the mean degree of their candidates; too few for an interval.

    In four graphs an order that means nothing is right by chance once in 24 times.
    """
    graphs = sorted(
        (one for one in results if one.point.density), key=lambda one: one.audit.candidates.degrees.mean()
    )
    if len(graphs) < 2:
        return []
    checks, variants = [], graphs[0].audit.spec.variants
    for method in variants:
        rows = [graph.rows[method] for graph in graphs]
        values = ", ".join(
            f"{graph.audit.candidates.degrees.mean():.1f}: {one.share:.2f}"
            for graph, one in zip(graphs, rows)
        )
        checks.append(
            Check(
                f"{title(method)}: epsilon as a share of the ceiling rises with the degree of the candidates, graph by "
                "graph",
                "failed" if any(one.all_failed for one in rows) else _order([one.share for one in rows]),
                f"{values}; one of {len(variants)} comparisons without an interval, each of which shows by chance with "
                f"a probability of 1 in {math.factorial(len(graphs))}",
            )
        )
    return checks


def _order(shares: Sequence[float]) -> str:
    """Verdict on shares that are expected to rise from each graph to the next."""
    if min(shares) >= 1:
        return "at the ceiling everywhere: nothing could show"
    steps = [after - before for before, after in pairwise(shares)]
    return "shows" if min(steps) > 0 else "reversed" if max(steps) < 0 else "does not show"


def _degree_checks(results: Sequence[PointResult]) -> list[Check]:
    """Within graphs whose candidates differ in degree; many comparisons, of which some show by chance."""
    found = [
        (result, one, rank_agreement(degrees, one.edge_success))
        for result in results
        if len(set(degrees := result.audit.candidates.degrees.tolist())) >= 3
        for one in result.methods
        if not one.all_failed
    ]
    return [
        Check(
            f"{result.point.title}, {title(one.row)}: edges of higher degree are recognised more often",
            _verdict(interval),
            f"rank correlation {with_interval(interval, 2)}; one of {len(found)} comparisons with intervals of 95 % "
            f"each, of which about {0.05 * len(found):.1f} miss 0 by chance",
        )
        for result, one, interval in found
    ]
