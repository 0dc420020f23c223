"""One set of records, split into candidate groups, held-out records and the rest, which is retained."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, Shaped

from jaxaudit.checks import check_integer
from jaxaudit.data.base import AuditData, Examples, make_groups
from jaxaudit.errors import InputError

MOST_GROUPS = 500


class Records(NamedTuple):
    """A labelled data set before it is split: ``y`` in ``0 .. num_classes - 1``, one id per record."""

    x: Shaped[np.ndarray, " n *features"]
    y: Int[np.ndarray, " n"]
    ids: tuple[str, ...]
    num_classes: int


def split_records(
    records: Records,
    *,
    name: str,
    description: str,
    seed: int,
    forget_ids: Sequence[Sequence[str]] | None = None,
    num_groups: int | None = None,
    group_size: int = 1,
    num_holdout: int | None = None,
    holdout: Examples | None = None,
) -> AuditData:
    """Split a data set for an audit, uniformly at random where nothing is asked for.

    All draws come from one ``numpy.random.default_rng(seed)``: first a permutation of the records, whose
    head is cut into the candidate groups (unless ``forget_ids`` names them), then a permutation of the
    rest, whose head is held out. Retained and held-out records stay in the order of the data set.

    Parameters
    ----------
    records
        The data set.
    forget_ids
        Record ids of each candidate group; sizes may differ. Excludes ``num_groups`` and ``group_size``.
    num_groups, group_size
        Number of groups drawn, default a third of the records and at most 500 groups; examples per group.
    num_holdout
        Records held out, default 20 % of those that are in no group (rounded down, at least 1).
    holdout
        Held-out records that came with the data set; excludes ``num_holdout``.

    Raises
    ------
    InputError
        Sizes that do not fit, unknown ids or an id listed twice, contradictory arguments.

    Examples
    --------
    >>> records = Records(np.arange(12.0).reshape(6, 2), np.array([0, 1] * 3), tuple("abcdef"), num_classes=2)
    >>> data = split_records(records, name="toy", description="", seed=0, forget_ids=[["c"], ["a"]])
    >>> data.group_ids, data.groups.x[:, 0].tolist(), data.num_retain, len(data.holdout.y)
    ((('c',), ('a',)), [[4.0, 5.0], [0.0, 1.0]], 3, 1)
    """
    rng = np.random.default_rng(check_integer("seed", seed, 0))
    if forget_ids is None:
        groups = _random_groups(rng, len(records.y), num_groups, check_integer("group_size", group_size, 1))
        drawn = "drawn uniformly"
    else:
        set_too = [f"num_groups={num_groups}"] if num_groups is not None else []
        set_too += [f"group_size={group_size}"] if group_size != 1 else []
        if set_too:
            raise InputError(f"num_groups and group_size come from forget_ids, got {', '.join(set_too)} too")
        groups = _requested_groups(records.ids, forget_ids)
        drawn = "as requested"
    rest = rng.permutation(np.setdiff1d(np.arange(len(records.y)), np.concatenate(groups)))
    held_out, retain = _hold_out(rest, num_holdout, holdout)
    sizes = sorted({len(group) for group in groups})
    size = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return AuditData(
        name=name,
        retain=_take(records, retain),
        groups=make_groups(records.x, records.y, groups),
        holdout=_take(records, held_out) if holdout is None else holdout,
        group_ids=tuple(tuple(records.ids[i] for i in group) for group in groups),
        num_classes=records.num_classes,
        description=(
            f"{description} {len(groups)} candidate groups of {size} {drawn}, {len(retain)} records "
            f"retained, {len(held_out) if holdout is None else len(holdout.y)} held out; split seed {seed}."
        ),
    )


def _random_groups(
    rng: np.random.Generator, num_records: int, num_groups: int | None, group_size: int
) -> list[list[int]]:
    if num_groups is None:
        num_groups = max(2, min(MOST_GROUPS, num_records // (3 * group_size)))
    check_integer("num_groups", num_groups, 2)
    if num_groups * group_size > num_records - 1:
        raise InputError(
            f"num_groups * group_size must leave some of the {num_records} records, "
            f"got {num_groups} * {group_size}"
        )
    drawn = rng.permutation(num_records)[: num_groups * group_size]
    return drawn.reshape(num_groups, group_size).tolist()


def _requested_groups(ids: tuple[str, ...], forget_ids: Sequence[Sequence[str]]) -> list[list[int]]:
    position = {record: i for i, record in enumerate(ids)}
    unknown = [record for group in forget_ids for record in group if record not in position]
    if unknown:
        hint = "; separate ids by commas" if len(unknown[0].split()) > 1 else ""
        raise InputError(
            f"forget_ids: the data has no record {unknown[0]!r} ({len(unknown)} unknown ids; "
            f"the data's {len(ids)} ids start with {', '.join(map(repr, ids[:3]))}){hint}"
        )
    if len(forget_ids) < 2 or not all(forget_ids):
        sizes = ", ".join(str(len(group)) for group in forget_ids[:10])
        raise InputError(
            f"forget_ids must name at least 2 groups of at least one record, got {len(forget_ids)} "
            f"with {sizes or 'no'} records"
        )
    return [[position[record] for record in group] for group in forget_ids]


def _hold_out(
    rest: Int[np.ndarray, " rest"], num_holdout: int | None, holdout: Examples | None
) -> tuple[Int[np.ndarray, " held_out"], Int[np.ndarray, " retain"]]:
    """Positions held out and retained, each in the order of the data set."""
    if holdout is not None:
        if num_holdout is not None:
            raise InputError(
                f"num_holdout must be left out, the data has its own held-out part; got {num_holdout}"
            )
        return rest[:0], np.sort(rest)
    if num_holdout is None:
        num_holdout = max(1, len(rest) // 5)
    if check_integer("num_holdout", num_holdout, 1) >= len(rest):
        raise InputError(
            f"num_holdout must leave a record to retain, got {num_holdout}: "
            f"{len(rest)} records are in no group"
        )
    return np.sort(rest[:num_holdout]), np.sort(rest[num_holdout:])


def _take(records: Records, positions: Int[np.ndarray, " k"]) -> Examples:
    return Examples(records.x[positions], records.y[positions], np.ones(len(positions), np.float32))
