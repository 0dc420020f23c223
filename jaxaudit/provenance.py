"""What made a result: versions, machine, date."""

import platform
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
        **{package: installed_version(package) for package in _PACKAGES},
    }


def peak_memory_bytes() -> int | None:
    """Largest resident memory of this process so far; ``None`` on systems that do not tell (Windows).

    Examples
    --------
    >>> peak_memory_bytes() > 2**20
    True
    """
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak  # Linux counts in KiB


def installed_version(package: str) -> str:
    """Version of an installed package, or ``not installed``.

    Examples
    --------
    >>> installed_version("no-such-package")
    'not installed'
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
