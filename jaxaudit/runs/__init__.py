"""The run axis: one-run pure functions are repeated over many runs here, and nowhere else.

All runs of a chunk are advanced together, by one compiled program that is called in segments of half a second or so
(which makes progress visible and resumable), on all devices, in the way that is fastest for the model at hand.

options
    `RunOptions` (what the user may say), `RunPlan` (what was chosen), `Saver` (where progress is kept).
devices
    The mesh over the run axis, and `to_host`, the one place where results are gathered.
workers
    On CPU a thread per core, each with a block of runs of its own.
programs
    vmap, jit and donation: one compilation per loop and shapes.
strategies
    The choice by measurement, and the chunk that fits the memory budget.
engine
    `run_loops` and `map_runs`.
stats, profile
    How it went, and what the machine can do.
"""

from jaxaudit.runs.devices import to_host as to_host
from jaxaudit.runs.engine import map_runs as map_runs
from jaxaudit.runs.engine import mapping_loop as mapping_loop
from jaxaudit.runs.engine import run_loops as run_loops
from jaxaudit.runs.options import DEFAULT_MEMORY_BUDGET as DEFAULT_MEMORY_BUDGET
from jaxaudit.runs.options import RunOptions as RunOptions
from jaxaudit.runs.options import RunPlan as RunPlan
from jaxaudit.runs.options import Saver as Saver
from jaxaudit.runs.profile import measured_matmul_peak as measured_matmul_peak
from jaxaudit.runs.profile import profile as profile
from jaxaudit.runs.programs import COMPILATIONS as COMPILATIONS
from jaxaudit.runs.stats import RunStats as RunStats
from jaxaudit.runs.strategies import Choice as Choice
from jaxaudit.runs.strategies import fastest as fastest
from jaxaudit.runs.strategies import plan_runs as plan_runs
