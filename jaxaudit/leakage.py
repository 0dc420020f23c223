"""Which groups were not forgotten: how well the evidence separates members, and which it recognises.

Nothing here enters a bound or a verdict; it answers the question *what* is still there.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import false_discovery_control

from jaxaudit.errors import InputError
from jaxaudit.scored import check_signs

FALSE_DISCOVERY_RATE = 0.1
"""Expected share of wrongly named groups among those named as recognised."""

FALSE_POSITIVE_RATES = (0.001, 0.01)

_MOST_RUNS_ENUMERATED = 12
# With this many draws the smallest p-value, 2e-5, can single out one group among 4,500 at the rate above.
_NUM_DRAWS = 49_999
_GROUPS_AT_ONCE = 64


@dataclass(frozen=True)
class RecordLeak:
    """How well the auditor recognises one group over all audited runs."""

    group: int
    log_odds: float
    """``T_j = sum over runs of S_j Lambda_j``: posterior log-odds that the auditor gives to the true
    membership, from even prior odds in each run; in nats, negative if it is misled."""
    p_value: float
    """Of the sign-flip test that Lambda_j has nothing to do with S_j."""
    q_value: float
    """The p-value after Benjamini-Hochberg over all groups."""


@dataclass(frozen=True)
class Leakage:
    """What the attacker's log-ratios reveal, over all (run, group) pairs and group by group."""

    roc_auc: float
    """Area under the ROC curve of all (run, group) pairs; 0.5 is chance."""
    tpr_at_fpr: dict[float, float]
    """Largest true-positive rate of a threshold whose false-positive rate is at most the key."""
    records: tuple[RecordLeak, ...]
    """Every group once, the surest first: by p-value, then by log-odds."""
    num_recognised: int
    """How many of them, from the top, have a q-value of at most ``false_discovery_rate``."""
    false_discovery_rate: float = FALSE_DISCOVERY_RATE


def measure_leakage(
    log_ratios: Float[np.ndarray, "runs groups"],
    signs: Int[np.ndarray, "runs groups"],
    failed: Bool[np.ndarray, " runs"] | None = None,
) -> Leakage:
    """Measure how well log-ratios tell members from non-members in audited runs.

    Parameters
    ----------
    log_ratios
        ``(runs, groups)``, finite unless the run failed: the attacker's log-likelihood ratio of each group
        (Algorithm 2's ``Lambda_j``), in nats, positive = more likely a member.
    signs
        ``(runs, groups)``, balanced, +1 = member; the truth.
    failed
        ``(runs,)``: runs that count as no evidence, with log-ratio 0. Default: none.

    Returns
    -------
    Leakage

    Notes
    -----
    The p-value of a group is exact for up to 12 runs, by enumeration of all 2^L sign patterns, and otherwise
    from 49,999 patterns drawn with a fixed seed (the observed one is counted in). The null hypothesis is that
    the group's evidence is independent of its membership. In a design with few groups, membership of one says
    something about the others (they add up to a constant), so that a group may be recognised by what was kept
    of the rest.

    Examples
    --------
    >>> signs = np.array([[1, -1], [-1, 1], [1, -1]])
    >>> leakage = measure_leakage(2.0 * signs, signs)
    >>> leakage.roc_auc, leakage.records[0]
    (1.0, RecordLeak(group=0, log_odds=6.0, p_value=0.125, q_value=0.125))
    """
    signs = check_signs(signs)
    ratios = _usable_ratios(log_ratios, signs, failed)
    log_odds = (signs * ratios).sum(axis=0)
    p_values = sign_flip_p_values(ratios, signs)
    q_values = false_discovery_control(p_values, method="bh")
    records = tuple(
        RecordLeak(int(j), float(log_odds[j]), float(p_values[j]), float(q_values[j]))
        for j in np.lexsort((-log_odds, p_values))
    )
    roc_auc, tpr_at_fpr = _roc(signs.ravel() == 1, ratios.ravel())
    return Leakage(
        roc_auc=roc_auc,
        tpr_at_fpr=tpr_at_fpr,
        records=records,
        num_recognised=int((q_values <= FALSE_DISCOVERY_RATE).sum()),
    )


def sign_flip_p_values(
    log_ratios: Float[np.ndarray, "runs groups"], signs: Int[np.ndarray, "runs groups"]
) -> Float[np.ndarray, " groups"]:
    """Probability of log-odds as large as those observed or larger, if evidence and membership are unrelated.

    Given the log-ratios of a group, its signs are then independent over runs and +1 with probability
    floor(m/2) / m. All sign patterns are enumerated, or sampled if there are too many; see `measure_leakage`.

    Parameters
    ----------
    log_ratios
        ``(runs, groups)``, finite; a run without evidence has 0.
    signs
        ``(runs, groups)``, balanced.

    Returns
    -------
    float64 array
        ``(groups,)``, in (0, 1]; 1 for a group without any evidence.

    Examples
    --------
    >>> signs = np.array([[1, -1], [-1, 1]])
    >>> sign_flip_p_values(np.array([[3.0, 0.0], [-1.0, 0.0]]), signs)
    array([0.25, 1.  ])
    """
    informative = np.any(log_ratios != 0, axis=1)
    ratios, observed = log_ratios[informative], (signs * log_ratios).sum(axis=0)
    share = (signs.shape[1] // 2) / signs.shape[1]
    patterns, shares, observed_share = _sign_patterns(len(ratios), share)
    # Sums that differ by rounding only are the same value.
    threshold = observed - 1e-12 * np.abs(log_ratios).sum(axis=0)
    p_values = np.ones(signs.shape[1])
    for start in range(0, signs.shape[1], _GROUPS_AT_ONCE):
        block = slice(start, start + _GROUPS_AT_ONCE)
        reached = patterns @ ratios[:, block] >= threshold[block]
        p_values[block] = np.where(reached.all(axis=0), 1.0, shares @ reached + observed_share)
    return p_values


def _sign_patterns(
    num_runs: int, share: float
) -> tuple[Float[np.ndarray, "patterns runs"], Float[np.ndarray, " patterns"], float]:
    """Sign patterns of one group (all or a sample), what each adds to a p-value, and the observed one."""
    if num_runs <= _MOST_RUNS_ENUMERATED:
        bits = np.arange(2**num_runs)[:, None] >> np.arange(num_runs) & 1
        return 2.0 * bits - 1.0, np.where(bits, share, 1 - share).prod(axis=1), 0.0
    drawn = np.random.default_rng(0).random((_NUM_DRAWS, num_runs)) < share
    one = 1 / (_NUM_DRAWS + 1)
    return 2.0 * drawn - 1.0, np.full(_NUM_DRAWS, one), one


def _roc(
    members: Bool[np.ndarray, " pairs"], ratios: Float[np.ndarray, " pairs"]
) -> tuple[float, dict[float, float]]:
    """Area under the ROC curve, and its height at small false-positive rates."""
    from sklearn.metrics import roc_auc_score, roc_curve  # slow to import, and needed here only

    # Attained thresholds only: an interpolated point of the curve belongs to no attack that was made.
    fpr, tpr, _ = roc_curve(members, ratios, drop_intermediate=False)
    reached = {
        rate: float(tpr[np.searchsorted(fpr, rate, side="right") - 1]) for rate in FALSE_POSITIVE_RATES
    }
    return float(roc_auc_score(members, ratios)), reached


def _usable_ratios(
    log_ratios: Float[np.ndarray, "runs groups"],
    signs: Int[np.ndarray, "runs groups"],
    failed: Bool[np.ndarray, " runs"] | None,
) -> Float[np.ndarray, "runs groups"]:
    """Log-ratios with those of failed runs set to 0, after checking them."""
    ratios = np.array(log_ratios, np.float64)
    if ratios.shape != signs.shape:
        raise InputError(f"log_ratios must have the shape {signs.shape} of signs, got {ratios.shape}")
    if failed is not None:
        ratios[np.asarray(failed, bool)] = 0.0
    if not np.isfinite(ratios).all():
        raise InputError(f"log_ratios must be finite, got {ratios[~np.isfinite(ratios)][0]}")
    return ratios
