"""What every audit starts from: retain records, candidate forget groups, held-out records."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from jaxaudit.border import as_integers, check_axes, content_hash
from jaxaudit.checks import check_integer
from jaxaudit.errors import InputError


class Examples(NamedTuple):
    """Labelled examples. ``weights`` is 1 for a record and 0 for padding. Of text, a label per token is known."""

    # NumPy arrays at the border, JAX arrays inside training: hence no array type.
    x: Float[Any, "*n features"] | Int[Any, "*n tokens"]
    y: Int[Any, "*n"] | Int[Any, "*n tokens"]
    weights: Float[Any, "*n"]


@dataclass(frozen=True, eq=False)
class AuditData:
    """Data of one audit: D_r, the candidate forget groups, and records that no run ever trains on.

    Parameters
    ----------
    name
        What a report calls the data.
    retain
        ``x (n, ...)``, ``y (n,)``, ``weights (n,)``: records that every run trains on and keeps. Of text, ``y`` is
        ``(n, tokens)``, the token that follows each one of ``x (n, tokens)``, which then stays integer.
    groups
        ``x (m, B, ...)``, ``y (m, B)``, ``weights (m, B)``: m candidate groups (the paper's m) of B
        examples; a run trains on half of them and then forgets them. Smaller groups are padded with weight
        0.
    holdout
        Like ``retain``: records for test accuracy only.
    group_ids
        Record ids of each group, without padding. Of text, whose examples are windows of a longer record, one id
        may stand for the whole group.
    num_classes
        Labels, and the tokens of text, are ``0 .. num_classes - 1``.
    description
        One or two sentences for the report: where the data came from and how it was split.
    num_scored
        How many examples of each group, from the first on, the auditor scores; ``None``: all. Overlapping windows of
        a text are all trained on, but only disjoint ones are scored.

    Raises
    ------
    InputError
        Fewer than 2 groups, no retain or no held-out record, shapes that disagree (the axis is named),
        features that are not finite in float32, labels or tokens out of range, weights that are not 0 or 1, a
        group without a record or without one that is scored, a record in two places of the groups.

    Examples
    --------
    >>> x, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
    >>> groups = make_groups(x, y, [[0], [1]])
    >>> one = Examples(x[2:3], y[2:3], np.ones(1))
    >>> data = AuditData("toy", one, groups, one, (("a",), ("b",)), num_classes=2, description="")
    >>> data.num_groups, data.group_size, data.num_retain, data.pool.x.shape
    (2, 1, 1, (3, 2))
    """

    name: str
    retain: Examples
    groups: Examples
    holdout: Examples
    group_ids: tuple[tuple[str, ...], ...]
    num_classes: int
    description: str
    num_scored: int | None = None

    def __post_init__(self) -> None:
        if self.num_classes < 2:
            raise InputError(f"num_classes must be at least 2, got {self.num_classes}")
        shapes = np.shape(self.retain.x)[1:], np.shape(self.retain.y)[1:2]
        for part, axes in _AXES.items():
            examples = _checked(part, getattr(self, part), axes, shapes, self.num_classes)
            object.__setattr__(self, part, examples)
        if self.num_groups < 2:
            raise InputError(f"groups must hold at least 2 candidate groups, got {self.num_groups}")
        for part in ("retain", "holdout"):
            if not getattr(self, part).weights.any():
                raise InputError(f"{part} must hold at least one record, got none")
        _check_group_ids(self.group_ids, self.groups.weights, one_suffices=self.is_text)
        _check_scored(self.num_scored, self.groups.weights)

    @property
    def is_text(self) -> bool:
        """Whether there is a label per token rather than one per example."""
        return self.retain.y.ndim == 2

    @property
    def score_weights(self) -> Float[np.ndarray, "groups scored"]:
        """Weights of the examples of each group that the auditor scores."""
        return self.groups.weights[:, : self.num_scored]

    @property
    def num_groups(self) -> int:
        """Number of candidate groups, the paper's m."""
        return self.groups.y.shape[0]

    @property
    def group_size(self) -> int:
        """Examples per group, padding included."""
        return self.groups.y.shape[1]

    @property
    def num_retain(self) -> int:
        """Number of retain records."""
        return self.retain.y.shape[0]

    @cached_property
    def pool(self) -> Examples:
        """Everything a run may train on, in one list that member indices point into.

        Index ``i < num_retain`` is a retain record; ``num_retain + j * group_size + b`` is example b of
        group j.
        """
        flat = (np.reshape(part, (-1, *part.shape[2:])) for part in self.groups)
        return Examples(*map(_frozen, (np.concatenate(pair) for pair in zip(self.retain, flat))))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over every array and the number of classes, the same on every machine."""
        arrays = {
            f"{part}.{field}": getattr(getattr(self, part), field)
            for part in _AXES
            for field in Examples._fields
        }
        return content_hash({**arrays, "num_classes": np.array([self.num_classes])})


def make_groups(
    x: Float[np.ndarray, " n *features"], y: Int[np.ndarray, " n"], positions: Sequence[Sequence[int]]
) -> Examples:
    """Pack records into groups of one size: x (m, B, ...), y (m, B), weights (m, B); B is the largest size.

    A smaller group is filled up with copies of its first example at weight 0, so that padding holds
    ordinary values.

    Examples
    --------
    >>> groups = make_groups(np.array([[0.5], [1.5], [2.5]]), np.array([0, 1, 1]), [[2, 0], [1]])
    >>> groups.x[..., 0].tolist(), groups.y.tolist(), groups.weights.tolist()
    ([[2.5, 0.5], [1.5, 1.5]], [[1, 0], [1, 1]], [[1.0, 1.0], [1.0, 0.0]])
    """
    empty = [j for j, group in enumerate(positions) if len(group) == 0]
    if empty or len(positions) == 0:
        raise InputError(
            f"every candidate group needs a record, got none in group {empty[0] if empty else 0}"
        )
    size = max(map(len, positions))
    index = np.array([[*group, *[group[0]] * (size - len(group))] for group in positions])
    weights = np.array([[1.0] * len(group) + [0.0] * (size - len(group)) for group in positions], np.float32)
    return Examples(x[index], y[index], weights)


_AXES = {"retain": ("examples",), "groups": ("groups", "examples"), "holdout": ("examples",)}


def _checked(
    part: str,
    given: Examples,
    axes: tuple[str, ...],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    num_classes: int,
) -> Examples:
    """The examples with canonical types, read-only, after all checks on values and shapes.

    ``shapes`` are those of one example's features and of its labels: ``(tokens,)`` of text, otherwise ``()``.
    """
    features, tokens = shapes
    y = as_integers(f"{part}.y", given.y)
    check_axes(f"{part}.y", y, dict.fromkeys(axes) | dict(zip(("tokens",), tokens)))
    lengths: dict[str, int | None] = dict(zip(axes, y.shape))
    x = _features(f"{part}.x", given.x, num_classes if tokens else None)
    check_axes(f"{part}.x", x, {**lengths, **{f"features {i}": size for i, size in enumerate(features)}})
    weights = np.asarray(given.weights, np.float32)
    check_axes(f"{part}.weights", weights, lengths)
    _check_range(f"{part}.y", y, num_classes)
    if not np.isin(weights, (0, 1)).all():
        raise InputError(f"{part}.weights must be 0 or 1, got {weights[~np.isin(weights, (0, 1))][0]}")
    return Examples(_frozen(x), _frozen(y.astype(np.int32)), _frozen(weights))


def _features(name: str, given: Any, num_tokens: int | None) -> np.ndarray:
    """Features in float32; of text, integer ones are tokens and stay integer."""
    given = np.asarray(given)
    if num_tokens is not None and given.dtype.kind in "iu":
        _check_range(name, given, num_tokens)
        return given.astype(np.int32)
    with np.errstate(over="ignore"):  # a value too large for float32 becomes inf and is named below
        x = given.astype(np.float32)
    if not np.isfinite(x).all():
        place = tuple(map(int, np.argwhere(~np.isfinite(x))[0]))
        raise InputError(f"{name} must be finite in float32, got {given[place]} at {place}")
    return x


def _check_range(name: str, values: Int[np.ndarray, "..."], num_classes: int) -> None:
    outside = (values < 0) | (values >= num_classes)
    if outside.any():
        raise InputError(
            f"{name} must be in 0 .. num_classes - 1 = {num_classes - 1}, got {values[outside][0]}"
        )


def _check_scored(num_scored: int | None, weights: Float[np.ndarray, "groups examples"]) -> None:
    if num_scored is None:
        return
    check_integer("num_scored", num_scored, low=1, high=weights.shape[1])
    without = ~weights[:, :num_scored].any(axis=1)
    if without.any():
        raise InputError(
            f"num_scored must leave an example in every group, got {num_scored}: group "
            f"{int(without.argmax())} has none"
        )


def _check_group_ids(
    group_ids: tuple[tuple[str, ...], ...], weights: Float[np.ndarray, "groups examples"], one_suffices: bool
) -> None:
    if len(group_ids) != len(weights):
        raise InputError(f"group_ids must name {len(weights)} groups, got {len(group_ids)}")
    for group, (ids, row) in enumerate(zip(group_ids, weights)):
        whole = one_suffices and len(ids) == 1 and row.any()
        if not whole and (len(ids) != row.sum() or not ids):
            raise InputError(
                f"group {group} has {int(row.sum())} records (weight 1) but {len(ids)} record ids"
            )
    seen: set[str] = set()
    for record in (record for ids in group_ids for record in ids):
        if record in seen:
            raise InputError(f"a record may be in one candidate group only, got record id {record!r} twice")
        seen.add(record)


def _frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view; the caller's own array stays writable."""
    view = array.view()
    view.flags.writeable = False
    return view
