"""Progress on stderr: a live bar in a terminal, plain lines elsewhere, nothing when asked to be quiet."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Advance = Callable[[int], None]
_SECONDS_BETWEEN_LINES = 5.0


class Reporter(Protocol):
    """What long computations report to."""

    def task(self, label: str, total: int) -> AbstractContextManager[Advance]:
        """Context of one task of ``total`` steps; gives ``advance(steps)``."""

    def say(self, text: str) -> None:
        """Show one line."""


class SilentReporter:
    """Shows nothing.

    Examples
    --------
    >>> with SilentReporter().task("training", 10) as advance:
    ...     advance(10)
    """

    @contextmanager
    def task(self, label: str, total: int) -> Iterator[Advance]:
        """See `Reporter`."""
        yield lambda steps: None

    def say(self, text: str) -> None:
        """See `Reporter`."""


class LineReporter:
    """Plain lines, for logs: the end of every task, and its state every few seconds in between.

    Examples
    --------
    >>> reporter = LineReporter(sys.stdout)
    >>> reporter.say("60 runs")
    60 runs
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    @contextmanager
    def task(self, label: str, total: int) -> Iterator[Advance]:
        """See `Reporter`."""
        began = shown = time.monotonic()
        done = 0

        def advance(steps: int) -> None:
            nonlocal done, shown
            done += steps
            if time.monotonic() - shown > _SECONDS_BETWEEN_LINES:
                shown = time.monotonic()
                self.say(f"{label}: {100 * done // max(total, 1)} %")

        yield advance
        self.say(f"{label}: done in {time.monotonic() - began:.1f} s")

    def say(self, text: str) -> None:
        """See `Reporter`."""
        print(text, file=self._stream, flush=True)


class BarReporter:
    """Live bars with the time that is left, for terminals."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)

    @contextmanager
    def task(self, label: str, total: int) -> Iterator[Advance]:
        """See `Reporter`."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self._console) as progress:
            task = progress.add_task(label, total=total)
            yield lambda steps: progress.advance(task, steps)

    def say(self, text: str) -> None:
        """See `Reporter`."""
        self._console.print(text, highlight=False, markup=False)


def default_reporter(quiet: bool = False) -> Reporter:
    """Bars in a terminal, lines elsewhere, nothing if quiet."""
    if quiet:
        return SilentReporter()
    return BarReporter() if sys.stderr.isatty() else LineReporter()
