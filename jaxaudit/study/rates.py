"""The learning rate of each method: as much forgetting as possible while the retained answers stay known."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxaudit.errors import InputError
from jaxaudit.study.models import MOVED, Case, Study
from jaxaudit.study.resultstore import Arrays

_MEASURE = "first hits"


class Tried(NamedTuple):
    """One rate of one method, on the tuning model: means over what it was tuned on."""

    method: str
    rate: float
    forget: float
    """Share of the tokens of exclusive forget answers that come first, given the true ones before them."""
    retain: float
    """Share of the retained answers all of whose tokens come first: those that greedy generation gives exactly."""
    allowed: bool
    """By the utility rule whether ``retain`` is at least the threshold, by the strong one whether ``forget`` is at most
    the threshold; never if the model diverged, which knows nothing and so seems to have forgotten everything."""
    finite: bool = True
    """Whether the parameters were finite afterwards."""


class RateChoice(NamedTuple):
    """What was tried for a method, and what was taken; see `best_rate` and `strongest_rate`."""

    method: str
    rate: float
    tried: tuple[Tried, ...]
    threshold: float
    """By the utility rule the least allowed ``retain``, by the strong one the largest allowed ``forget``."""

    def document(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {**self._asdict(), "tried": [one._asdict() for one in self.tried]}

    @property
    def met(self) -> bool:
        """Whether any rate was allowed; if not, the one that comes nearest to the rule is taken."""
        return any(one.allowed for one in self.tried)

    @property
    def at_end(self) -> bool:
        """Whether the rate is the smallest or the largest that was tried: a better one may lie beyond."""
        return self.rate in (min(one.rate for one in self.tried), max(one.rate for one in self.tried))


def tuning_cases(study: Study, edges: Sequence[str]) -> list[Case]:
    """All models that `choose_rates` needs."""
    spec = study.spec
    tried = [
        Case("tried", spec.tuning_seed, edge, method, rate)
        for method in spec.methods
        for edge in edges
        for rate in spec.rates
    ]
    return [Case("before", spec.tuning_seed), *tried]


def choose_rates(study: Study, edges: Sequence[str]) -> dict[str, RateChoice]:
    """One rate per method, from the tuning seed and some edges, as the paper fixes one per method and model.

    Of the rates under which at least ``min_utility`` of the retained answers stay exactly known, the one that forgets
    most; of equal ones the smallest. All measures are teacher-forced. Neither the models that are reported nor any
    retrained one plays a part.

    Parameters
    ----------
    study
        Its settings name methods, rates and threshold.
    edges
        Edges to be forgotten, one at a time; at least one.

    Raises
    ------
    InputError
        If there is no edge.
    """
    if not edges:
        raise InputError("edges must hold at least one edge, got none")
    study.ensure(tuning_cases(study, edges))
    return {method: _choose(study, method, edges) for method in study.spec.methods}


def _choose(study: Study, method: str, edges: Sequence[str]) -> RateChoice:
    spec = study.spec
    parts = [study.questions.parts(edge) for edge in edges]
    before = study.result(Case("before", spec.tuning_seed))
    threshold = spec.min_utility * _retained([before] * len(edges), parts)
    tried = []
    for rate in sorted(spec.rates):
        found = [study.result(Case("tried", spec.tuning_seed, edge, method, rate)) for edge in edges]
        forgotten = [one[_MEASURE][own["exclusive"]].mean() for one, own in zip(found, parts)]
        retain = _retained(found, parts)
        finite = all(bool(np.isfinite(one[MOVED])) for one in found if MOVED in one)
        allowed = finite and retain >= threshold
        tried.append(Tried(method, rate, float(np.mean(forgotten)), retain, allowed, finite))
    return RateChoice(method, best_rate(tried), tuple(tried), threshold)


def _retained(found: Sequence[Arrays], parts: Sequence[Mapping[str, np.ndarray]]) -> float:
    """Mean over edges of the share of retained answers that are known to the last token."""
    shares = [(one[_MEASURE][own["retain"]] == 1).mean() for one, own in zip(found, parts)]
    return float(np.mean(shares))


def best_rate(tried: Sequence[Tried]) -> float:
    """The utility rule: the allowed rate that forgets most, or the one that retains most if none is allowed.

    Of equals the smallest; one after which the model is not finite only if there is no other.

    Examples
    --------
    >>> best_rate([Tried("npo", 1e-3, 0.5, 0.99, True), Tried("npo", 1e-2, 0.1, 0.4, False)])
    0.001
    """
    allowed = [one for one in tried if one.allowed]
    if allowed:
        return min(allowed, key=lambda one: (one.forget, one.rate)).rate
    return min(tried, key=lambda one: (not one.finite, -one.retain, one.rate)).rate


def strongest_rate(tried: Sequence[Tried]) -> float:
    """The strong rule: the smallest allowed rate, or the one that forgets most if none is allowed.

    Of equals the smallest; one after which the model is not finite only if there is no other.

    Examples
    --------
    >>> strongest_rate([Tried("npo", 1e-3, 0.5, 0.9, False), Tried("npo", 1e-2, 0.1, 0.4, True)])
    0.01
    """
    allowed = [one.rate for one in tried if one.allowed]
    if allowed:
        return min(allowed)
    return min(tried, key=lambda one: (not one.finite, one.forget, one.rate)).rate
