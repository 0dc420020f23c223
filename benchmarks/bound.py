"""How long do the bounds take, and how much of that is saved against the paper's double loop?

python benchmarks/bound.py
"""

import statistics
import time
from math import floor

import numpy as np
from scipy.special import gammaln, logsumexp

from jaxaudit.bound import counts, epsilon_lower_bound, law, log_evidence, log_overlap_counts


def double_loop(num_groups: int, num_guesses: int) -> np.ndarray:
    """log N_u as the paper writes it: a loop over u and over all a1 + a2 = u."""
    half, rest = num_guesses // 2, num_groups - num_guesses

    def log_binomial(n: int, k: int) -> float:
        return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) if 0 <= k <= n else -np.inf

    def terms(u: int) -> list[float]:
        return [
            log_binomial(rest, floor(rest / 2) - (2 * a - u))
            + log_binomial(half, a)
            + log_binomial(half, u - a)
            for a in range(max(0, u - half), min(half, u) + 1)
        ]

    return np.array([logsumexp(terms(u)) for u in range(num_guesses + 1)])


def clear_caches() -> None:
    """Every timing starts cold."""
    for module in (counts, law):
        for function in vars(module).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()


def seconds(function, *args, repeats=3, **kwargs):
    """Median time and the last result."""
    times = []
    for _ in range(repeats):
        clear_caches()
        began = time.perf_counter()
        result = function(*args, **kwargs)
        times.append(time.perf_counter() - began)
    return statistics.median(times), result


def main() -> None:
    print(
        f"{'m':>6} {'r':>6}  {'counts':>9} {'double loop':>12} {'ratio':>7}  {'full direct bound, L = 10':>26}"
    )
    for num_groups, num_guesses, share, with_loop in (
        (400, 100, 0.65, True),
        (4500, 3000, 0.57, True),
        (45_000, 30_000, 0.57, False),
    ):
        fast, found = seconds(log_overlap_counts, num_groups, num_guesses)
        overlaps = [int(share * num_guesses)] * 10
        bound, _ = seconds(epsilon_lower_bound, overlaps, num_groups=num_groups, num_guesses=num_guesses)
        slow, ratio = "-", "-"
        if with_loop:
            loop_seconds, expected = seconds(double_loop, num_groups, num_guesses, repeats=1)
            np.testing.assert_allclose(found, expected, rtol=1e-9)
            slow, ratio = f"{loop_seconds:.2f} s", f"{loop_seconds / fast:.0f}"
        print(f"{num_groups:6} {num_guesses:6}  {fast:7.3f} s {slow:>12} {ratio:>7}  {bound:24.3f} s")
    rng = np.random.default_rng(0)
    signs = rng.permuted(np.tile(np.repeat([1, -1], 2250), (10, 1)), axis=1)
    taken, _ = seconds(log_evidence, rng.normal(size=signs.shape), signs)
    print(f"soft evidence of 10 runs at m = 4500: {taken:.3f} s")


if __name__ == "__main__":
    main()
