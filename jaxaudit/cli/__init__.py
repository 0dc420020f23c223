"""The command line: one module per command, loaded only when it is the one that was asked for."""

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import tyro

import jaxaudit
from jaxaudit.errors import InputError


class Command(NamedTuple):
    """Where a command lives, and what the list of commands says about it."""

    module: str
    name: str
    text: str


COMMANDS = {
    "run": Command(
        "run", "Run", "Audit unlearning methods: train, unlearn, attack, bound, report. Start here."
    ),
    "plan": Command("plan", "Plan", "Show what a design can find, before anything is trained."),
    "design": Command(
        "design", "Design", "Write the sign vectors and rules of an audit, for training elsewhere."
    ),
    "bound": Command(
        "bound", "Bound", "Bound epsilon from scores, log-ratios, guesses or overlaps made elsewhere."
    ),
    "verify": Command("verify", "Verify", "Recompute every statistical number of a report folder."),
    "validate": Command("validate", "Validate", "Measure how often the bounds raise a false alarm."),
    "pistol": Command(
        "pistol",
        "Pistol",
        "Make and inspect PISTOL data, and forget edges of it with a small language model.",
    ),
    # A module of that name would hide the built-in in this package.
    "list": Command("catalogue", "Catalogue", "List methods, scores, predictors and data sets."),
}
_DESCRIPTION = """Audits of machine unlearning. --version shows the version.

Exit codes: 0 not falsified or no claim tested, 3 the claim is falsified, 4 "verify" or "validate" found a
mismatch, 2 bad input, 1 a fault of this software."""

BAD_INPUT, INTERNAL_ERROR, INTERRUPTED, BROKEN_PIPE = 2, 1, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command.

    Parameters
    ----------
    argv
        Arguments after the program's name; default: those of this process.

    Returns
    -------
    The exit code; messages about bad input go to stderr, without a traceback.

    Examples
    --------
    >>> main(["plan", "--num-groups", "6", "--num-guesses", "3", "--quiet"])
    2
    """
    try:
        arguments = list(sys.argv[1:] if argv is None else argv)
        if arguments == ["--version"]:
            print(f"jaxaudit {jaxaudit.__version__}")
            return 0
        code: int = _parse(arguments).execute()
        sys.stdout.flush()
        return code
    except SystemExit as stop:  # help and usage errors of the parser
        return stop.code if isinstance(stop.code, int) else BAD_INPUT
    except BrokenPipeError:
        # The reader of stdout has gone; without this, Python complains once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (InputError, OSError) as error:
        print(f"jaxaudit: error: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("jaxaudit: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception:
        traceback.print_exc()
        print("jaxaudit: internal error; please report it with the lines above", file=sys.stderr)
        return INTERNAL_ERROR


def _parse(argv: list[str]) -> Any:
    """The command with its options, as an object with a method ``execute() -> exit code``."""
    config = (tyro.conf.FlagCreatePairsOff,)
    if argv and argv[0] in COMMANDS:
        name, *options = argv
        entry = COMMANDS[name]
        command = getattr(import_module(f"jaxaudit.cli.{entry.module}"), entry.name)
        return tyro.cli(command, prog=f"jaxaudit {name}", args=options, config=config)
    # Only help and the complaint about a missing or unknown command come from here.
    choices = {name: _stand_in(entry.text) for name, entry in COMMANDS.items()}
    return tyro.extras.subcommand_cli_from_dict(
        choices, prog="jaxaudit", description=_DESCRIPTION, args=argv, config=config
    )


def _stand_in(text: str) -> Callable[[], None]:
    """A command that only shows up in the list of commands."""

    def command() -> None: ...

    command.__doc__ = text
    return command
