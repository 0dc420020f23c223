"""Every benchmark of training runs, in its smallest size, and its ways of doing the same agree."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


def run(page, tmp_path):
    target = tmp_path / "numbers.json"
    command = [sys.executable, str(FOLDER / f"{page}.py"), "--smoke", "--json", str(target)]
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(target.read_text())


@pytest.mark.slow
@pytest.mark.parametrize(("page", "implementations"), [("mlp", 1), ("lstm", 1), ("tinynet", 2)])
def test_ways_of_training_side_by_side(page, implementations, tmp_path):
    text, (result, *others) = run(page, tmp_path)
    ways = [row["way"] for row in result["rows"]]
    assert not others
    assert sum(way.startswith("jaxaudit") for way in ways) == implementations
    assert sum(way.startswith("JAX, run after run") for way in ways) == implementations
    with_torch = "PyTorch is not installed" not in text
    assert sum(way.startswith("PyTorch") for way in ways) == 2 * with_torch
    assert all(row["seconds"] > 0 and row["times_as_fast"] > 0 for row in result["rows"])
    assert all(way in text for way in ways)


@pytest.mark.slow
def test_growth_with_the_number_of_runs(tmp_path):
    _, rows = run("growth", tmp_path)
    assert [row["runs"] for row in rows] == [1, 2]
    assert all(0 < row["share_of_matmul_peak"] < 1 for row in rows)


@pytest.mark.slow
def test_where_the_time_goes(tmp_path):
    text, kinds = run("where", tmp_path)
    assert len(kinds) == len(text.splitlines()) == 3
    for found in kinds.values():
        assert found["matrix products"] > 0
        assert all(microseconds >= 0 for microseconds in found.values())


@pytest.mark.slow
def test_adapters_on_one_base_take_less_memory_than_copies(tmp_path):
    text, rows = run("adapters", tmp_path)
    memory = {row["way"]: row["mebibytes"] for row in rows}
    assert memory["one base, real tokens only"] < memory["one base"] < memory["a base per run"]
    assert all(row["seconds"] > 0 and row["way"] in text for row in rows)
