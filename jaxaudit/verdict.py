"""A claimed (epsilon, delta), and what an audit says about it."""

from dataclasses import dataclass

from jaxaudit.checks import check_delta, check_epsilon


@dataclass(frozen=True)
class Claim:
    """A claimed (epsilon, delta), to be tested: epsilon >= 0 in nats, delta in [0, 1).

    Examples
    --------
    >>> Claim(epsilon=-1.0)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: epsilon must not be negative, got -1.0
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)


@dataclass(frozen=True)
class Verdict:
    """Whether a claim is falsified at the declared significance."""

    claim: Claim
    falsified: bool
    p_values: dict[str, float]
    """p-value of the claim by each deciding bound (``direct``, ``soft``)."""
    levels: dict[str, float]
    """Level each of them is tested at; the levels add up to the significance."""
    ceiling: float
    """Largest epsilon that this design could have shown at the claim's delta; a claim above it cannot fail."""

    @property
    def text(self) -> str:
        """One sentence in plain words."""
        claim = f"(epsilon {self.claim.epsilon:g}, delta {self.claim.delta:g})"
        if self.falsified:
            return f"falsified at level {sum(self.levels.values()):g}: the claim {claim}"
        if self.claim.epsilon >= self.ceiling:
            return f"not falsified: {claim} is not below the design's ceiling {self.ceiling:.2f}; it could not fail"
        return f"not falsified: this attack found no evidence against {claim}; this is no certificate"
