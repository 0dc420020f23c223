import subprocess
import sys
from datetime import datetime
from importlib.metadata import version

from jaxaudit.provenance import installed_version, peak_memory_bytes, provenance


def test_versions_are_those_installed():
    facts = provenance()
    assert facts["numpy"] == version("numpy")
    assert facts["jax"] == version("jax")
    assert datetime.fromisoformat(facts["date"]).utcoffset().total_seconds() == 0


def test_a_missing_package_is_no_error():
    assert installed_version("no-such-package") == "not installed"


def test_peak_memory_is_unknown_where_the_system_does_not_tell(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory_bytes() is None


def test_peak_memory_follows_the_largest_use():
    """A process that fills a block larger than anything before it; Linux hands the peak down from the parent."""
    code = """
from jaxaudit.provenance import peak_memory_bytes
before = peak_memory_bytes()
block = bytearray(before + 50 * 2**20)
print(before, len(block), peak_memory_bytes())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, size, peak = map(int, done.stdout.split())
    assert 5 * 2**20 < before < size <= peak < size + 100 * 2**20
