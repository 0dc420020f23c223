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


def test_peak_memory_grows_with_use():
    before = peak_memory_bytes()
    block = bytearray(before + 64 * 2**20)
    block[::4096] = b"x" * len(block[::4096])
    assert peak_memory_bytes() > before
    assert before > 10 * 2**20
