"""A deletion request, as people write it, turned into candidate groups of record ids."""

import re
from pathlib import Path

from jaxaudit.border import check_is_file
from jaxaudit.errors import InputError

# A longer range is a typing mistake, and would fill the memory before anything could say so.
LONGEST_RANGE = 1_000_000


def parse_forget_ids(text: str) -> tuple[tuple[str, ...], ...]:
    """Candidate groups of record ids: one record per group from a list, one group per line from a file.

    Parameters
    ----------
    text
        ``12,40-45``: ids and ranges of integer ids, both ends included, one group per record.
        ``@requests.txt``: a file with one group per line, written in the same way; ``#`` starts a comment,
        blank lines are skipped. An id is a string, compared to the data's ids character by character;
        ``rec-7`` is one id, not a range.

    Returns
    -------
    groups
        Record ids of each group; groups of a file may have unequal sizes.

    Raises
    ------
    InputError
        An empty list or file, an empty id, a range that is cut off, runs backwards, or is longer than a
        million.

    Examples
    --------
    >>> parse_forget_ids("12,40-42")
    (('12',), ('40',), ('41',), ('42',))
    >>> parse_forget_ids("12,45-40")
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: forget_ids: range '45-40' must not run backwards
    """
    if text.startswith("@"):
        return _parse_file(Path(text[1:]))
    return tuple((record,) for record in _parse_list(text, "forget_ids"))


def _parse_file(path: Path) -> tuple[tuple[str, ...], ...]:
    check_is_file(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}") from error
    wanted = ((number, line.split("#")[0].strip()) for number, line in enumerate(lines, start=1))
    groups = tuple(_parse_list(line, f"{path}, line {number}") for number, line in wanted if line)
    if not groups:
        raise InputError(f"{path} lists no record ids")
    return groups


def _parse_list(text: str, where: str) -> tuple[str, ...]:
    return tuple(record for token in text.split(",") for record in _parse_token(token.strip(), where, text))


def _parse_token(token: str, where: str, text: str) -> tuple[str, ...]:
    if not token:
        raise InputError(f"{where}: empty record id in {text!r}")
    bounds = re.fullmatch(r"([0-9]{0,18})\s*-\s*([0-9]{0,18})", token)
    if bounds is None or re.fullmatch(r"-[0-9]+", token):  # a negative integer is an id
        return (token,)
    first, last = bounds.groups()
    if not (first and last):
        raise InputError(f"{where}: range {token!r} must have two ends, as in 40-45")
    if int(last) < int(first):
        raise InputError(f"{where}: range {token!r} must not run backwards")
    if int(last) - int(first) >= LONGEST_RANGE:
        raise InputError(f"{where}: range {token!r} must not name more than {LONGEST_RANGE:,} records")
    # Ids such as 007 keep their leading zeros.
    return tuple(str(number).zfill(len(first)) for number in range(int(first), int(last) + 1))
