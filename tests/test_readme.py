"""Every command and code block of the README.

A block may be preceded by a marker in an HTML comment:

``<!-- command: NAME -->``  a command that installs something; `.ci/run` carries it out, here it is only parsed
``<!-- parse: REASON -->``  needs what is not there; only parsed
``<!-- needs: MODULE -->``  skipped without it
``<!-- output: COMMAND -->`` shows what a command printed
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

README = Path(__file__).parents[1] / "README.md"
FENCE = re.compile(
    r"^(?:<!-- (?P<marker>[a-z]+): (?P<text>[^\n]+) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.M | re.S,
)


class Block(NamedTuple):
    line: int
    marker: str | None
    text: str | None
    language: str
    code: str


def read_blocks():
    text = README.read_text()
    for match in FENCE.finditer(text):
        yield Block(text[: match.start()].count("\n") + 1, *match.group("marker", "text", "language", "code"))


BLOCKS = list(read_blocks())


def run(command, folder):
    """A command with this Python's programs first on the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(README.parent)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_every_fence_is_understood():
    assert README.read_text().count("\n```") == 2 * len(BLOCKS)
    assert {block.marker for block in BLOCKS} <= {None, "command", "parse", "needs", "output"}
    assert {block.language for block in BLOCKS} <= {"bash", "python", "text"}
    assert [block.text for block in BLOCKS if block.marker == "command"] == ["main job", "tests", "smollm2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "block", [b for b in BLOCKS if b.language == "bash"], ids=lambda block: f"line-{block.line}"
)
def test_shell_blocks(block, tmp_path):
    if block.marker in ("command", "parse"):
        assert run(["bash", "-n", "-c", block.code], tmp_path).returncode == 0
        return
    done = run(["bash", "-euo", "pipefail", "-c", block.code], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "block", [b for b in BLOCKS if b.language == "python"], ids=lambda block: f"line-{block.line}"
)
def test_python_blocks(block, tmp_path):
    compile(block.code, "README.md", "exec")
    if block.marker == "parse":
        return
    if block.marker == "needs" and not find_spec(block.text):
        pytest.skip(f"{block.text} is not installed")
    done = run([sys.executable, "-c", block.code], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
