"""Structure of the package: imports go one way, files stay short, the statistics do not need JAX."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "jaxaudit"
FILES = sorted(PACKAGE.rglob("*.py"))

# The flow of an audit, first to last. A module imports from its own line or from earlier ones.
ORDER = [
    ["errors"],
    ["border", "checks", "keys", "provenance", "progress", "verdict"],
    ["design", "scored"],
    ["designfile", "scorefile", "scorecsv"],
    ["data"],
    ["signs"],
    ["schedules"],
    ["train"],
    ["bound"],
    ["models", "unlearn"],
    ["llm"],
    ["metrics", "scores"],
    ["evaluate"],
    ["runs"],
    ["attack", "cross_validation", "convex"],
    ["overlap", "leakage"],
    ["predictor"],
    ["selection"],
    ["analysis"],
    ["report"],
    ["store"],
    ["study"],
    ["pipeline"],
    ["audit", "external", "checkpoint", "rules"],
    ["suites", "designspec"],
    ["spec"],
    ["cli"],
    ["__main__"],
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
# The engine is used by everything that has many runs, but knows nothing of unlearning, scores or evaluation.
ENGINE_MAY_IMPORT = {"errors", "progress", "train"}
WITHOUT_JAX = [
    "jaxaudit",
    "jaxaudit.bound",
    "jaxaudit.analysis",
    "jaxaudit.report",
    "jaxaudit.external",
    "jaxaudit.convex",
]


def stage(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_stages(path):
    for node in ast.walk(ast.parse(path.read_text())):
        modules = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            modules = [node.module]
            if node.module == "jaxaudit":
                modules = [f"jaxaudit.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        yield from (module.split(".")[1] for module in modules if module.startswith("jaxaudit."))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    if path.parent == PACKAGE and path.name == "__init__.py":
        return  # the lazy top-level API may name everything
    own = stage(path)
    assert own in RANK, f"{own} has no place in the flow"
    for other in imported_stages(path):
        assert RANK[other] <= RANK[own], f"{own} imports {other}, which comes later"


@pytest.mark.parametrize("path", sorted((PACKAGE / "runs").glob("*.py")), ids=lambda path: path.name)
def test_the_engine_knows_only_training_loops(path):
    assert set(imported_stages(path)) <= ENGINE_MAY_IMPORT | {"runs"}


def test_only_the_engine_compiles_loops_over_runs():
    """Jit, vmap, sharding and the loops of many runs are in one place; elsewhere, functions describe one run."""
    words = ("shard_map", "jax.make_mesh", "process_allgather", "NamedSharding")
    for path in FILES:
        if path.parent != PACKAGE / "runs":
            assert not any(word in path.read_text() for word in words), path


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_are_short(path):
    assert len(path.read_text().splitlines()) <= 400
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            body = node.end_lineno - node.body[0].lineno
            docstring = ast.get_docstring(node, clean=False)
            lines = body - (docstring.count("\n") if docstring else 0)
            assert lines <= 60, f"{path.name}: {node.name} has {lines} lines"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_public_functions_and_classes_are_documented(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), f"{path} has no module docstring"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{path.name}: {node.name} has no docstring"


@pytest.mark.parametrize("module", WITHOUT_JAX)
def test_the_statistics_do_not_load_jax(module):
    code = f"import sys, {module}; sys.exit('jax' in sys.modules or 'jaxlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
