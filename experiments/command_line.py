"""What every script does with its command line: options from a dataclass, errors as one line."""

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import tyro

from jaxaudit.errors import InputError

Options = TypeVar("Options")


def carry_out(
    options_type: type[Options],
    description: str | None,
    argv: Sequence[str] | None,
    work: Callable[[Options], None],
) -> int:
    """Read the options and do the work; returns the exit code, 2 for bad input."""
    try:
        work(
            tyro.cli(options_type, description=description, args=argv, config=(tyro.conf.FlagCreatePairsOff,))
        )
        return 0
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
