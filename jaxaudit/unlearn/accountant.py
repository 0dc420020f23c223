r"""How many noisy steps of model clipping give (epsilon, delta)-unlearning. NumPy and SciPy only.

One noisy step is the Markov kernel ``x -> Pi_C(f(x)) + N(0, sigma^2 I)``, where Pi_C projects on the L2 ball of radius
C and f is the gradient step on a retain batch. Two of its outputs are Gaussians of deviation sigma whose means are at
most 2 C apart, whatever x and f are; so with r = 2 C / sigma and the hockey-stick divergence of two such Gaussians

    theta(e, r) = Q(e/r - r/2) - exp(e) Q(e/r + r/2),    Q(z) = P(N(0, 1) > z)

(Balle and Wang 2018), the divergence delta_t at level exp(epsilon) between the iterates of two runs that differ in
their start only falls as

    delta_{t+1} = delta_t theta(e_t, r),    exp(e_t) = 1 + (exp(epsilon) - 1) / delta_t,

which is the advanced joint convexity of Balle et al. (2019, Theorem 2) and what Theorem 4.2 of Koloskova et al. (2025)
rests on. Without noise before the first step delta_0 = 1; a start that is projected on the ball of radius C0 and gets
noise sigma0 has delta_0 = theta(epsilon, 2 C0 / sigma0).

**Learning rate and weight decay do not enter.** Weight decay makes the step ``x - rate (g + lambda x)`` contract x, but
before the projection, and the input of every step but the first carries Gaussian noise, so it is unbounded, and the
gradient g of an arbitrary loss is unbounded too: the images of two inputs can be any two points, and after the
projection any two points of the ball. Their largest distance is exactly 2 C. A smaller r would need a bound on the
gradients, which model clipping does not assume.

The reference code differs twice: it puts ``exp(epsilon)`` where ``exp(epsilon) - 1`` belongs, which promises too much
(34 steps instead of 40 for epsilon 1, C 0.2, sigma 0.1), and for epsilon above 700 it drops the second term of theta,
which asks for too many steps (4041 instead of 4013 for epsilon 1e5, C 0.225, sigma 0.001). Table 6 of the paper prints
40, which is the exact recursion, and 4041, which is the one without the second term.
"""

import math
from dataclasses import dataclass

from scipy.optimize import brentq

from jaxaudit.bound.gaussian import gaussian_epsilon
from jaxaudit.bound.gaussian import log_gaussian_delta as log_theta
from jaxaudit.checks import check_integer, check_not_negative, check_open_delta, check_positive
from jaxaudit.errors import InputError

COUNT_LIMIT = 200_000
"""Where counting steps ends; counting that far takes about two seconds."""
_MOST = 10**15
_LEAST_EPSILON = 1e-12
_FLOOR = -1e10  # below it log delta is kept as it is: every step squares it, and the two tails of theta merge


@dataclass(frozen=True)
class ModelClipping:
    """The constants of model clipping that its guarantee depends on, and no others.

    Raises
    ------
    InputError
        If a radius or sigma is not positive, or a starting noise is negative.

    Examples
    --------
    >>> ModelClipping(radius=0.2, sigma=0.1).ratio
    4.0
    """

    radius: float
    """C2, the radius of the ball after every step; positive, in units of the parameters."""
    sigma: float
    """Standard deviation of the noise of every step; positive, in units of the parameters."""
    initial_radius: float = 30.0
    """C0, the radius of the ball before the first step; positive. Matters only with ``initial_sigma``."""
    initial_sigma: float = 0.0
    """Standard deviation sigma0 of the noise before the first step; not negative."""

    def __post_init__(self) -> None:
        check_positive(radius=self.radius, sigma=self.sigma, initial_radius=self.initial_radius)
        check_not_negative(initial_sigma=self.initial_sigma)
        for ratio in (self.ratio, self.initial_ratio or 1.0):
            if not 1e-50 < ratio < 1e50:
                raise InputError(f"radius / sigma must be in (1e-50, 1e50), got {ratio / 2:.3g}")

    @property
    def ratio(self) -> float:
        """r = 2 C2 / sigma: largest distance of two means after a step, in standard deviations."""
        return 2 * self.radius / self.sigma

    @property
    def initial_ratio(self) -> float | None:
        """2 C0 / sigma0, the same before the first step; ``None`` without noise."""
        return 2 * self.initial_radius / self.initial_sigma if self.initial_sigma else None


@dataclass(frozen=True)
class NoisySteps:
    """Result of `noisy_steps`."""

    num_steps: int | None
    """Smallest number of noisy steps that gives (epsilon, delta); ``None`` if it is too large to be counted."""
    at_least: int
    """Lower bound on that number, which is the number itself where that is known; at most 1e15."""
    budget: int
    """Steps that the method may take."""

    @property
    def reachable(self) -> bool:
        """Whether the steps fit the budget."""
        return self.num_steps is not None and self.num_steps <= self.budget

    @property
    def summary(self) -> str:
        """The answer in words."""
        if self.reachable:
            return f"{self.num_steps:,} steps"
        needed = f"at least {self.at_least:,}" if self.num_steps is None else f"{self.num_steps:,}"
        return f"not reachable in the budget of {self.budget:,} steps: {needed} are needed"


def noisy_steps(
    epsilon: float, delta: float, clipping: ModelClipping, *, budget: int = COUNT_LIMIT
) -> NoisySteps:
    """Smallest number of noisy steps after which model clipping is (epsilon, delta)-unlearning.

    Parameters
    ----------
    epsilon
        Positive, in nats; works up to 1e6 and beyond.
    delta
        In (0, 1); works down to 1e-300.
    clipping
        Radii and noise.
    budget
        Steps that the method may take. Counting goes on behind it, up to `COUNT_LIMIT`, to say what would be needed.

    Returns
    -------
    A `NoisySteps`; 0 steps if the starting noise is enough.

    Raises
    ------
    InputError
        An argument is outside its range or not finite.

    Notes
    -----
    The recursion at the top of `jaxaudit.unlearn.accountant`, in logs.

    Examples
    --------
    Table 6 of the paper, delta 1e-5 and 50 epochs of 316 updates; it prints 40, "N/A" and 4041:

    >>> noisy_steps(1.0, 1e-5, ModelClipping(radius=0.2, sigma=0.1), budget=15_800).summary
    '40 steps'
    >>> noisy_steps(10.0, 1e-5, ModelClipping(radius=0.1, sigma=0.02), budget=15_800).summary
    'not reachable in the budget of 15,800 steps: 48,004 are needed'
    >>> noisy_steps(1e5, 1e-5, ModelClipping(radius=0.225, sigma=0.001), budget=15_800).summary
    '4,013 steps'
    """
    check_positive(epsilon=epsilon)
    check_open_delta(delta)
    target = math.log(delta)
    check_integer("budget", budget, low=0)
    limit = max(budget, COUNT_LIMIT)
    at_least = _steps_at_least(epsilon, target, clipping)
    if at_least <= limit:
        log_delta = _initial_log_delta(epsilon, clipping)
        for step in range(limit + 1):
            if log_delta <= target:
                return NoisySteps(step, step, budget)
            log_delta = _next_log_delta(log_delta, epsilon, clipping)
    return NoisySteps(None, max(at_least, limit + 1), budget)


def log_delta_after(num_steps: int, epsilon: float, clipping: ModelClipping) -> float:
    """Natural logarithm of the delta that holds at epsilon after some noisy steps.

    Parameters
    ----------
    num_steps
        At least 0.
    epsilon
        Positive, in nats.
    clipping
        Radii and noise.

    Returns
    -------
    log delta <= 0; finite.

    Examples
    --------
    >>> print(f"{math.exp(log_delta_after(40, 1.0, ModelClipping(radius=0.2, sigma=0.1))):.1e}")
    1.9e-06
    """
    check_integer("num_steps", num_steps, low=0)
    check_positive(epsilon=epsilon)
    log_delta = _initial_log_delta(epsilon, clipping)
    for _ in range(num_steps):
        log_delta = _next_log_delta(log_delta, epsilon, clipping)
    return log_delta


def epsilon_after(num_steps: int, delta: float, clipping: ModelClipping) -> float | None:
    """Smallest epsilon that holds at delta after some noisy steps: the inverse of `log_delta_after`.

    Parameters
    ----------
    num_steps
        At least 0.
    delta
        In (0, 1).
    clipping
        Radii and noise.

    Returns
    -------
    epsilon >= 0, in nats; 0.0 where the iterates are within delta in total variation. ``None``
    without any noise: no step and no starting noise.

    Examples
    --------
    >>> print(f"{epsilon_after(40, 1e-5, ModelClipping(radius=0.2, sigma=0.1)):.3f}")
    0.962
    """
    check_integer("num_steps", num_steps, low=0)
    check_open_delta(delta)
    target = math.log(delta)
    # Any one of the steps alone, or the starting noise alone, is a Gaussian mechanism.
    upper = math.inf
    if num_steps:
        upper = gaussian_epsilon(2 * clipping.radius, clipping.sigma, delta)
    if clipping.initial_ratio:
        upper = min(upper, gaussian_epsilon(2 * clipping.initial_radius, clipping.initial_sigma, delta))
    if upper == math.inf:
        return None

    def excess(epsilon: float) -> float:
        # log delta is nearly quadratic in itself from step to step: its logarithm is a tamer function of epsilon.
        log_delta = log_delta_after(num_steps, epsilon, clipping)
        return math.log(target / min(log_delta, -1e-300))

    lower = min(_LEAST_EPSILON, upper)
    if upper == 0 or excess(lower) <= 0:
        return 0.0
    if excess(upper) >= 0:
        return upper
    return float(brentq(excess, lower, upper, xtol=1e-300, rtol=1e-12))


def _initial_log_delta(epsilon: float, clipping: ModelClipping) -> float:
    """log delta_0."""
    return log_theta(clipping.initial_ratio, epsilon) if clipping.initial_ratio else 0.0


def _next_log_delta(log_delta: float, epsilon: float, clipping: ModelClipping) -> float:
    """log delta_{t+1} from log delta_t."""
    if log_delta < _FLOOR:
        return log_delta
    return log_delta + log_theta(clipping.ratio, _level(log_delta, epsilon))


def _level(log_delta: float, epsilon: float) -> float:
    """e_t = log(1 + (exp(epsilon) - 1) / delta_t)."""
    log_excess = epsilon + math.log(-math.expm1(-epsilon))  # log(exp(epsilon) - 1)
    return _log1pexp(log_excess - log_delta)


def _steps_at_least(epsilon: float, target: float, clipping: ModelClipping) -> int:
    """Lower bound on the number of steps: while delta is above 1/2, no step gains more than one at 1/2 would."""
    half = math.log(0.5)
    distance = _initial_log_delta(epsilon, clipping) - max(target, half)
    gain = -log_theta(clipping.ratio, _level(half, epsilon))
    return int(min(max(distance, 0.0) / gain, _MOST)) if gain > 0 else _MOST


def _log1pexp(value: float) -> float:
    """log(1 + exp(value)) without overflow."""
    return max(value, 0.0) + math.log1p(math.exp(-abs(value)))
