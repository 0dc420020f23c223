"""What made a result: versions, machine, date."""

import platform
import resource
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("jaxaudit", "jax", "jaxlib", "flax", "optax", "numpy", "scipy", "scikit-learn")


def provenance() -> dict[str, str]:
    """Versions of everything that can change a number, the kind of machine, and the date (UTC).

    Examples
    --------
    >>> sorted(provenance())[:3]
    ['date', 'flax', 'jax']
    """
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        **{package: _version(package) for package in _PACKAGES},
    }


def peak_memory_bytes() -> int:
    """Largest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak  # Linux counts in KiB


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
