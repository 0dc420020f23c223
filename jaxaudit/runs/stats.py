"""How runs were carried out, in numbers."""

import resource
import sys
from dataclasses import dataclass

import jax

from jaxaudit.runs.options import RunPlan


@dataclass(frozen=True)
class RunStats:
    """How runs were carried out.

    Examples
    --------
    >>> stats = RunStats(num_runs=60, num_steps=2000, plan=RunPlan("scan", 60), program_bytes=2**20, seconds=8.0,
    ...                  compile_seconds=2.0, flops=1.2e12)
    >>> stats.runs_per_second, stats.steps_per_second, stats.flops_per_second
    (10.0, 20000.0, 200000000000.0)
    """

    num_runs: int
    num_steps: int
    """Steps of each run that were asked for."""
    plan: RunPlan
    program_bytes: int
    """Memory per device of the compiled program for one block: arguments, results and temporaries. The other blocks of
    a chunk are kept besides; 0 if all came from a `Saver`."""
    seconds: float
    """Wall time, all included."""
    compile_seconds: float = 0.0
    """Part of it that went into tracing and compilation; 0 if the program was there already."""
    plan_seconds: float = 0.0
    """Part of it that went into choosing how (measurements, a look into the store), compilation aside."""
    flops: float | None = None
    """Floating-point operations of all steps of all runs by the compiler's count for one step; ``None`` if it gives
    none."""
    in_float32: bool = True
    """Whether every matrix product and convolution of a step is one of float32, as the measured peak is."""
    devices: tuple[str, ...] = ()
    """Names of the devices that the runs were spread over."""
    matmul_precision: str = "highest"
    computed: float = 1.0
    """Share of the steps that were carried out now; the others came from a `Saver`."""
    peak_bytes: int | None = None
    """Largest memory in use so far: of the busiest local device where it says so, otherwise of this process."""

    @property
    def chunk(self) -> int:
        """Runs that were kept at the same step."""
        return self.plan.chunk

    @property
    def run_seconds(self) -> float:
        """Wall time without compilation and planning."""
        return max(self.seconds - self.compile_seconds - self.plan_seconds, 1e-9)

    @property
    def runs_per_second(self) -> float:
        """Runs carried out per second, compilation and planning aside."""
        return self.computed * self.num_runs / self.run_seconds

    @property
    def steps_per_second(self) -> float:
        """Steps of single runs per second, compilation and planning aside."""
        return self.num_steps * self.runs_per_second

    @property
    def flops_per_second(self) -> float | None:
        """Floating-point operations per second, as the other rates; ``None`` if their number is not known."""
        return None if self.flops is None else self.computed * self.flops / self.run_seconds


def peak_bytes() -> int | None:
    """Largest memory in use so far: of the busiest local device where it says so, otherwise of this process.

    Examples
    --------
    >>> peak_bytes() > 2**20
    True
    """
    peaks = [(device.memory_stats() or {}).get("peak_bytes_in_use") for device in jax.local_devices()]
    known = [peak for peak in peaks if peak is not None]
    if known:
        return int(max(known))
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else 1024 * used
