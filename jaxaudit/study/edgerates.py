"""The learning rates of an audit of edges, from one run that is not audited and forgets half of the candidates."""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PyTree

from jaxaudit.study.chunks import filled, in_chunks
from jaxaudit.study.edgemodels import Reading, run_keys
from jaxaudit.study.edgespec import BEFORE, STRONG, EdgeAuditSpec, method_of
from jaxaudit.study.edgetraining import FineTuned
from jaxaudit.study.rates import RateChoice, Tried, best_rate, strongest_rate
from jaxaudit.study.resultstore import Arrays

TUNING = "tuning"
"""Name of the model on which rates are chosen."""
_MEASURE = "first hits"


class EdgeRates:
    """One rate per method and rule; every rate that was tried is kept.

    Forget is measured on the exclusive questions that the run learnt, retain on the retained edges; for the rules see
    `EdgeAuditSpec`, `best_rate` and `strongest_rate`.

    Parameters
    ----------
    spec
        Methods, rules, rates.
    fine_tuned
        Models, and the store of everything.
    reading
        Of one run, with a sign vector of its own.
    floor
        What the retrained model knows: first hits of all questions; asked for the strong rule only.
    """

    def __init__(
        self,
        spec: EdgeAuditSpec,
        fine_tuned: FineTuned,
        reading: Reading,
        floor: Callable[[], Float[np.ndarray, " questions"]],
    ) -> None:
        self._spec, self._fine_tuned, self._reading, self._floor = spec, fine_tuned, reading, floor
        self._store, self._models = fine_tuned.store, fine_tuned.models
        self._chosen: dict[str, RateChoice] = {}

    def choice(self, variant: str) -> RateChoice:
        """What was tried and taken for a variant of a method; what is missing is made."""
        if variant not in self._chosen:
            self._chosen[variant] = self._choose(variant)
        return self._chosen[variant]

    def seconds(self) -> float:
        """Wall seconds of all that has been tried, and of the model that it was tried on."""
        methods = [(method, rate) for method in self._spec.chosen_methods for rate in self._rates]
        found = [self._store.get(_place(*one)) for one in ((BEFORE, 0.0), *methods)]
        tried = sum(float(one["seconds"]) for one in found if one is not None)
        return tried + self._fine_tuned.seconds([TUNING])

    @property
    def _rates(self) -> list[float]:
        return sorted(self._spec.study.rates)

    def _choose(self, variant: str) -> RateChoice:
        method, strong = method_of(variant), variant.endswith(STRONG)
        if strong:
            threshold, _ = self._known(self._floor())
        else:
            threshold = self._spec.study.min_utility * self._known(self._tried(BEFORE, 0.0)[_MEASURE])[1]
        tried = []
        for rate in self._rates:
            found = self._tried(method, rate)
            forget, retain = self._known(found[_MEASURE])
            finite = bool(np.isfinite(found["norm"]))
            allowed = finite and (forget <= threshold if strong else retain >= threshold)
            tried.append(Tried(method, rate, forget, retain, allowed, finite))
        chosen = strongest_rate(tried) if strong else best_rate(tried)
        return RateChoice(method, chosen, tuple(tried), threshold)

    def _known(self, hits: Float[np.ndarray, " questions"]) -> tuple[float, float]:
        """Share of tokens of exclusive forgotten answers, and of retained answers that are known to the last token."""
        own = self._models.candidates
        rows = own.rows.reshape(-1)
        exclusive = rows[np.isin(rows, self._reading.forget[0]) & ~own.shared.reshape(-1)]
        return float(hits[exclusive].mean()), float((hits[own.retained_rows] == 1).mean())

    def _tried(self, method: str, rate: float) -> Arrays:
        """First hits of the tuning model before unlearning or after a method, and the norm of what it changed."""
        if self._store.get(_place(method, rate)) is None:
            self._try(method)
        found = self._store.get(_place(method, rate))
        assert found is not None
        return found

    def _try(self, method: str) -> None:
        seed, chunk = self._spec.study.tuning_seed, self._models.study.chunk
        whole = self._fine_tuned.get([TUNING], self._reading.members, run_keys(seed, TUNING, 1))
        together: PyTree = self._models.repeated(jax.tree.map(lambda leaf: leaf[0], whole))
        began = time.perf_counter()
        if method == BEFORE:
            self._keep(method, [0.0], together, [0.0], began)
            return
        # The same noise at every rate, so that these are compared with the same adapters.
        keys = jnp.broadcast_to(run_keys(seed, f"method {method}", 1), (chunk,))
        reading = self._reading.take([0] * chunk)
        for rates in in_chunks(self._rates, chunk):
            began = time.perf_counter()
            params, norms = self._models.unlearn(
                method, reading, filled(rates, chunk), keys, together, f"rates of {method}"
            )
            self._keep(method, rates, params, norms, began)

    def _keep(
        self, method: str, rates: list[float], params: PyTree, norms: list[float], began: float
    ) -> None:
        found = [self._models.measure(params, place, with_texts=False) for place in range(len(rates))]
        share = np.asarray((time.perf_counter() - began) / len(rates))
        for rate, norm, one in zip(rates, norms, found):
            self._store.put(_place(method, rate), {**one, "norm": np.asarray(norm), "seconds": share})


def _place(method: str, rate: float) -> str:
    return f"tried/{method}/rate-{rate!r}"
