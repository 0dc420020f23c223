import subprocess
import sys
from datetime import datetime
from importlib.metadata import version

from jaxaudit.provenance import _version, peak_memory_bytes, provenance


def test_versions_are_those_installed():
    facts = provenance()
    assert facts["numpy"] == version("numpy")
    assert facts["jax"] == version("jax")
    assert datetime.fromisoformat(facts["date"]).utcoffset().total_seconds() == 0


def test_a_missing_package_is_no_error():
    assert _version("no-such-package") == "not installed"


def test_peak_memory_is_that_of_the_process():
    """A fresh process that fills 100 MiB has a peak of at least that, and not of twice as much."""
    code = "from jaxaudit.provenance import *; block = bytearray(100 * 2**20); print(peak_memory_bytes())"
    peak = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert 100 * 2**20 < peak < 200 * 2**20
