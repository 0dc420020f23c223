"""The program itself: help, usage errors, exit codes of what goes wrong, and what is not loaded."""

import builtins
import subprocess
import sys

import pytest

import jaxaudit
from jaxaudit import cli as program
from jaxaudit.cli import COMMANDS, main, plan
from jaxaudit.errors import InputError

SIZES = ("--num-groups", "6", "--num-guesses", "6")
PLAN = ("plan", *SIZES, "--quiet")


def test_help_lists_every_command(cli):
    outcome = cli("--help")
    assert outcome.code == 0
    for name, command in COMMANDS.items():
        assert name in outcome.out
        assert command.text.split()[0] in outcome.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(cli, name):
    outcome = cli(name, "--help")
    assert outcome.code == 0
    assert f"usage: jaxaudit {name}" in outcome.out
    assert "--json" in outcome.out
    command = COMMANDS[name]
    assert hasattr(getattr(sys.modules[f"jaxaudit.cli.{command.module}"], command.name), "execute")


def test_version(cli):
    outcome = cli("--version")
    assert (outcome.code, outcome.out) == (0, f"jaxaudit {jaxaudit.__version__}\n")


def test_module_is_the_program():
    command = [sys.executable, "-W", "error", "-m", "jaxaudit"]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"jaxaudit {jaxaudit.__version__}\n"
    assert subprocess.run([*command, "verify", "nowhere"], capture_output=True, check=False).returncode == 2


def test_no_command_hides_a_builtin():
    assert not {command.module for command in COMMANDS.values()} & vars(builtins).keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing subcommand"),
        (("audit",), "Unrecognized options: audit"),
        (("plan",), "Missing from jaxaudit plan"),
        ((*PLAN, "--num-guess", "4"), "Perhaps you meant"),
        (("plan", "--num-groups", "six", "--num-guesses", "6"), "num-groups"),
    ],
)
def test_usage_errors(cli, arguments, message):
    outcome = cli(*arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.out == ""


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InputError("num_runs must be even, got 3"), 2, "jaxaudit: error: num_runs must be even, got 3\n"),
        (
            PermissionError(13, "Permission denied", "report"),
            2,
            "error: [Errno 13] Permission denied: 'report'\n",
        ),
        (KeyboardInterrupt(), 130, "jaxaudit: interrupted\n"),
        (ZeroDivisionError("division by zero"), 1, "jaxaudit: internal error; please report it"),
    ],
)
def test_exit_codes_of_errors(cli, monkeypatch, error, code, message):
    def fail(**arguments):
        raise error

    monkeypatch.setattr(plan, "plan", fail)
    outcome = cli(*PLAN)
    assert outcome.code == code
    assert message in outcome.err
    assert ("Traceback" in outcome.err) == (code == 1)
    assert outcome.out == ""


def test_arguments_default_to_those_of_the_process(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["jaxaudit", *PLAN])
    assert main() == 0
    assert "ceiling" in capsys.readouterr().out


def test_reader_that_stops_reading():
    code = "import sys; from jaxaudit.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-W", "error", "-c", code, *PLAN]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.wait() == program.BROKEN_PIPE
    assert process.stderr.read() == b""
    process.stderr.close()


def test_help_and_statistics_do_not_load_jax(tmp_path):
    (tmp_path / "overlaps.csv").write_text("run,overlap\n0,6\n1,6\n")
    code = f"""
import sys
from jaxaudit.cli import main
assert main(["--help"]) == 0
assert not {{"jax", "scipy", "matplotlib"}} & sys.modules.keys()
assert main({list(PLAN)!r}) == 0
assert not {{"jaxaudit.report", "sklearn", "matplotlib"}} & sys.modules.keys()
assert main(["validate", "--num-audits", "2"]) == 0
assert main(["bound", {str(tmp_path / "overlaps.csv")!r}, *{SIZES!r}]) == 0
assert main(["verify", "nowhere"]) == 2
assert not {{"jax", "sklearn", "orbax"}} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True)
