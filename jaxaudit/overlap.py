"""Overlap: how many of a run's guesses are right. From here on there are only small integers."""

import numpy as np
from jaxtyping import Int

from jaxaudit.errors import InputError
from jaxaudit.scored import check_signs


def overlap(
    guesses: Int[np.ndarray, "runs groups"], signs: Int[np.ndarray, "runs groups"]
) -> Int[np.ndarray, " runs"]:
    """Number of correct non-zero guesses of each run, ``V = sum_j max(0, guess_j S_j)`` (Algorithm 1).

    Parameters
    ----------
    guesses
        ``(runs, groups)`` in {-1, 0, +1}: +1 = guessed a member, -1 = guessed a non-member, 0 = no guess.
        Exactly r/2 of each sign in every row, with one even r >= 2 for all runs.
    signs
        ``(runs, groups)``, balanced, +1 = member.

    Returns
    -------
    int64 array
        ``(runs,)``, in 0 to r.

    Raises
    ------
    InputError
        Naming the row, if guesses or signs are not as described.

    Examples
    --------
    >>> overlap([[1, 0, -1, 0]], [[1, 1, -1, -1]])
    array([2])
    """
    signs, guesses = check_signs(signs), check_guesses(guesses)
    if guesses.shape != signs.shape:
        raise InputError(f"guesses must have the shape {signs.shape} of signs, got {guesses.shape}")
    return np.count_nonzero(guesses == signs, axis=1).astype(np.int64)


def check_guesses(guesses: object, name: str = "guesses") -> Int[np.ndarray, "runs groups"]:
    """Guess vectors as int8, after checking shape, values in {-1, 0, +1} and r/2 guesses of each sign.

    Examples
    --------
    >>> check_guesses([[1, -1, 0], [1, 1, -1]])
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: guesses must have as many +1 as -1 in every row, got 2 and 1 in row 1
    """
    array = np.asarray(guesses)
    if array.ndim != 2 or len(array) == 0:
        raise InputError(f"{name} must have shape (runs >= 1, groups), got {array.shape}")
    if not np.isin(array, (-1, 0, 1)).all():
        raise InputError(f"{name} must be -1, 0 or +1, got {array[~np.isin(array, (-1, 0, 1))][0]}")
    positives, negatives = (array == 1).sum(axis=1), (array == -1).sum(axis=1)
    _check_rows(name, positives, negatives, "have as many +1 as -1")
    _check_rows(name, positives, np.full_like(positives, positives[0]), "have as many +1 as in row 0")
    if positives[0] == 0:
        raise InputError(f"{name} must have at least one +1 and one -1 in every row, got none")
    return array.astype(np.int8)


def _check_rows(
    name: str, counts: Int[np.ndarray, " runs"], wanted: Int[np.ndarray, " runs"], rule: str
) -> None:
    if (counts != wanted).any():
        row = int(np.argmax(counts != wanted))
        raise InputError(f"{name} must {rule} in every row, got {counts[row]} and {wanted[row]} in row {row}")
