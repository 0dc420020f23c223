"""The top-level API: lazy, complete, and without JAX until JAX is needed."""

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

import jaxaudit


def test_statistics_do_not_load_jax():
    code = """
import sys, jaxaudit, jaxaudit.bound
from jaxaudit import AuditData, AuditDesign, CalibrationRuns, Claim, audit_scores, load_data
assert "jax" not in sys.modules
jaxaudit.SgdSpec
assert "jax" in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_every_public_name_is_there():
    for name in jaxaudit.__all__:
        assert getattr(jaxaudit, name) is not None
        assert name in dir(jaxaudit)
    assert jaxaudit.run_audit is importlib.import_module("jaxaudit.audit").run_audit
    assert jaxaudit.load_data is importlib.import_module("jaxaudit.data").load
    assert isinstance(jaxaudit.models, ModuleType)


def test_version_is_looked_up_once(monkeypatch):
    monkeypatch.delitem(vars(jaxaudit), "__version__", raising=False)
    provenance = importlib.import_module("jaxaudit.provenance")
    assert jaxaudit.__version__ == provenance.provenance()["jaxaudit"]
    monkeypatch.setattr(provenance, "version", None)
    assert isinstance(jaxaudit.__version__, str)


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'audits'"):
        _ = jaxaudit.audits
