"""What was expected of `pistol_epsilon.py`, and what the numbers say."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from pistol_epsilon_points import Point
from pistol_page import Check

from jaxaudit.metrics import Interval
from jaxaudit.study import EdgeAudit, EdgeEpsilon, rank_correlation
from jaxaudit.study.edgespec import BEFORE, RETRAINED, STRONG, method_of
from jaxaudit.study.page import REMEMBERED, method_title, with_interval

TITLES = {BEFORE: "no unlearning", RETRAINED: "exact retraining"}
NEAR_CEILING = 0.9
NEAR_RETRAINING = 5.0
"""Points of the deviation score above that of retraining, within which a score is called good."""


class PointResult(NamedTuple):
    """One graph."""

    name: str
    point: Point
    audit: EdgeAudit
    rows: Mapping[str, EdgeEpsilon]

    @property
    def methods(self) -> list[EdgeEpsilon]:
        """Without the two baselines."""
        return [self.rows[name] for name in self.audit.spec.variants]


def title(row: str) -> str:
    """What a reader sees."""
    return TITLES.get(row) or method_title(method_of(row)) + (STRONG if row.endswith(STRONG) else "")


def share(one: EdgeEpsilon) -> float:
    """Epsilon as a share of its ceiling, so that graphs with different numbers of candidates can be compared."""
    return one.epsilon / one.headline.ceiling if one.headline.ceiling > 0 else 0.0


def relation_of(pairs: Sequence[tuple[PointResult, EdgeEpsilon]]) -> Interval:
    """Rank correlation of deviation score and share of the ceiling, over methods and graphs."""
    return _correlation([one.deviation.score for _, one in pairs], [share(one) for _, one in pairs])


def _correlation(x: Sequence[float], y: Sequence[float]) -> Interval:
    if len(x) < 4 or np.ptp(x) == 0 or np.ptp(y) == 0:  # nothing varies, so nothing goes with anything
        return Interval(0.0, 0.0, 0.0, 0.95, "pairs", "bootstrap")
    return rank_correlation(x, y)


def _good(pairs: Sequence[tuple[PointResult, EdgeEpsilon]]) -> list[tuple[PointResult, EdgeEpsilon]]:
    return [
        pair
        for pair in pairs
        if pair[1].deviation.score <= pair[1].deviation.retrained_score + NEAR_RETRAINING
    ]


def summary(
    results: Sequence[PointResult], pairs: Sequence[tuple[PointResult, EdgeEpsilon]], relation: Interval
) -> tuple[str, ...]:
    """Sentences that are computed from the numbers."""
    left = [pair for pair in pairs if pair[1].epsilon > 0]
    good = _good(pairs)
    leaking = [pair for pair in good if pair[1].epsilon > 0]
    best = [min(result.methods, key=lambda one: one.deviation.score) for result in results]
    shown = "; ".join(
        f"{result.point.title}: {title(one.row)} with DS {one.deviation.score:.1f} and epsilon {one.epsilon:.2f} of at "
        f"most {one.headline.ceiling:.2f}"
        for result, one in zip(results, best)
    )
    clean = sum(one.rows[RETRAINED].epsilon == 0 for one in results)
    return (
        f"Of {len(pairs)} pairs of graph and method, {len(left)} leave evidence of what was forgotten (epsilon above "
        f"0); exact retraining leaves none in {clean} of {len(results)} graphs.",
        f"Does a good deviation score mean forgotten? {len(good)} pairs have a score at most {NEAR_RETRAINING:g} above "
        f"that of retraining; {len(leaking)} of these have an epsilon above 0. The rank correlation of deviation score "
        f"and epsilon (as a share of its ceiling) is {with_interval(relation, 2)}.",
        f"The best deviation score of each graph: {shown}.",
    )


def checks_of(
    results: Sequence[PointResult], pairs: Sequence[tuple[PointResult, EdgeEpsilon]], relation: Interval
) -> tuple[Check, ...]:
    """Of every graph, of all of them together, by density, and by degree."""
    checks = []
    for result in results:
        before, retrained = result.rows[BEFORE], result.rows[RETRAINED]
        known = min(before.forget, before.retain) >= REMEMBERED
        checks += [
            Check(
                f"{result.point.title}: before unlearning, all answers are remembered (ROUGE-1 at least {REMEMBERED})",
                "yes" if known else "NO: what follows says little about unlearning",
                f"forget {before.forget:.3f}, retain {before.retain:.3f}",
            ),
            Check(
                f"{result.point.title}: exact retraining leaves nothing",
                "yes" if retrained.epsilon == 0 else "NO: something is wrong",
                f"epsilon {retrained.epsilon:.2f}",
            ),
            Check(
                f"{result.point.title}: without unlearning, epsilon is at least {NEAR_CEILING:.0%} of the ceiling",
                "yes" if share(before) >= NEAR_CEILING else "NO: the attack is weak here",
                f"epsilon {before.epsilon:.2f} of at most {before.headline.ceiling:.2f}",
            ),
        ]
    checks.append(
        Check(
            "a better deviation score goes with a smaller epsilon",
            _verdict(relation),
            f"rank correlation {with_interval(relation, 2)} over {len(pairs)} pairs of graph and method",
        )
    )
    return (*checks, *_shared_checks(results), *_density_checks(results), *_degree_checks(results))


def _verdict(found: Interval) -> str:
    return "shows" if found.low > 0 else "reversed" if found.high < 0 else "does not show"


def _shared_checks(results: Sequence[PointResult]) -> list[Check]:
    """Answers that retained edges have, too, tell less about what was learnt and forgotten."""
    checks = []
    for result in results:
        rows = [result.rows[BEFORE], *result.methods]
        found = [{look.name: one.epsilon for look, one in row.analyses.items()} for row in rows]
        pairs = [
            (one["shared"], one["exclusive"]) for one in found if "shared" in one and one["exclusive"] > 0
        ]
        less = sum(shared < exclusive for shared, exclusive in pairs)
        if pairs:
            checks.append(
                Check(
                    f"{result.point.title}: shared questions show less than exclusive ones",
                    "shows" if less == len(pairs) else "does not show",
                    f"in {less} of {len(pairs)} rows in which exclusive ones show something",
                )
            )
    return checks


def _density_checks(results: Sequence[PointResult]) -> list[Check]:
    """Graphs of equal size, by the mean degree of their candidates; too few for an interval."""
    graphs = sorted(
        (one for one in results if one.point.density), key=lambda one: one.audit.candidates.degrees.mean()
    )
    if len(graphs) < 2:
        return []
    checks = []
    for method in graphs[0].audit.spec.variants:
        values = [share(graph.rows[method]) for graph in graphs]
        rising, falling = (
            all(sign * (after - before) >= 0 for before, after in pairwise(values))
            and values[0] != values[-1]
            for sign in (1, -1)
        )
        checks.append(
            Check(
                f"{title(method)}: epsilon rises with the degree of the candidates, graph by graph",
                "shows" if rising else "reversed" if falling else "does not show",
                ", ".join(
                    f"{graph.audit.candidates.degrees.mean():.1f}: {graph.rows[method].epsilon:.2f}"
                    for graph in graphs
                ),
            )
        )
    return checks


def _degree_checks(results: Sequence[PointResult]) -> list[Check]:
    """Within graphs whose candidates differ in degree."""
    checks = []
    for result in results:
        degrees = result.audit.candidates.degrees.astype(float)
        if len(set(degrees.tolist())) < 3:
            continue
        for one in result.methods:
            found = _correlation(degrees.tolist(), one.edge_success.tolist())
            checks.append(
                Check(
                    f"{result.point.title}, {title(one.row)}: edges of higher degree are recognised more often",
                    _verdict(found),
                    f"rank correlation {with_interval(found, 2)}",
                )
            )
    return checks
