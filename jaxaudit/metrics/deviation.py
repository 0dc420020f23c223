"""The deviation score of PISTOL: how far a model is from forgetting everything and keeping everything."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from jaxaudit.errors import InputError


@dataclass(frozen=True)
class Deviation:
    """A model's deviation score beside that of a model retrained without the forget set."""

    score: float
    retrained_score: float
    """The floor: retraining leaves shared facts and lucky guesses, so it is not 0."""
    distance: float
    """100 times the Euclidean distance of the two models' pairs of means (forget, retain)."""

    @property
    def excess(self) -> float:
        """Score minus the retrained model's; below 0 the model knows less of the forget set than retraining leaves."""
        return self.score - self.retrained_score


def deviation_score(forget: ArrayLike, retain: ArrayLike) -> float:
    """``DS = 100 sqrt(R_f^2 + (1 - R_r)^2)`` of the means of two lists of ROUGE-1 recalls (section 4 of Qiu et al.).

    The score of means is not the mean of scores; the published tables use means, too.

    Parameters
    ----------
    forget, retain
        ROUGE-1 recall of answers to forget and to retain questions, or their means: numbers in [0, 1], at least one.

    Returns
    -------
    A number in [0, 100 sqrt(2)]: 0 is nothing left of the forget set and all of the retain set.

    Raises
    ------
    InputError
        If there is no number, or one is not in [0, 1].

    References
    ----------
    Qiu et al. (2025), How Data Inter-connectivity Shapes LLMs Unlearning.

    Examples
    --------
    >>> round(deviation_score(0.521, 0.845), 1)
    54.4
    """
    return float(deviation_of_means(np.mean(_recalls("forget", forget)), np.mean(_recalls("retain", retain))))


def deviation_of_means(forget: ArrayLike, retain: ArrayLike) -> Float[np.ndarray, "*batch"]:
    """The deviation score of every pair of means; for resampling.

    Examples
    --------
    >>> deviation_of_means([0.0, 0.6], [1.0, 0.2]).tolist()
    [0.0, 100.0]
    """
    return 100 * np.hypot(np.asarray(forget), 1 - np.asarray(retain))


def deviation_from_retraining(
    forget: ArrayLike, retain: ArrayLike, *, retrained_forget: ArrayLike, retrained_retain: ArrayLike
) -> Deviation:
    """The deviation score, and the distance to that of exact retraining.

    Parameters
    ----------
    forget, retain
        As for `deviation_score`.
    retrained_forget, retrained_retain
        The same of a model that was trained without the forget set.

    Raises
    ------
    InputError
        If a list is empty, or a number is not in [0, 1].

    Examples
    --------
    >>> result = deviation_from_retraining(0.1, 0.9, retrained_forget=0.3, retrained_retain=1.0)
    >>> f"{result.score:.1f} {result.retrained_score:.1f} {result.excess:.1f} {result.distance:.1f}"
    '14.1 30.0 -15.9 22.4'
    """
    means = np.array([np.mean(_recalls("forget", forget)), np.mean(_recalls("retain", retain))])
    floor = np.array(
        [
            np.mean(_recalls("retrained_forget", retrained_forget)),
            np.mean(_recalls("retrained_retain", retrained_retain)),
        ]
    )
    return Deviation(
        float(deviation_of_means(*means)),
        float(deviation_of_means(*floor)),
        float(100 * np.linalg.norm(means - floor)),
    )


def _recalls(name: str, values: ArrayLike) -> Float[np.ndarray, "*n"]:
    array = np.asarray(values, dtype=float)
    if array.size == 0:
        raise InputError(f"{name} must hold at least one number, got none")
    good = (array >= 0) & (array <= 1)  # False for NaN
    if not good.all():
        raise InputError(f"{name} must be in [0, 1], got {array[~good][0]}")
    return array
