import resource
from dataclasses import replace

import numpy as np

from jaxaudit.runs import RunPlan, RunStats
from jaxaudit.runs.stats import peak_bytes

STATS = RunStats(
    num_runs=8,
    num_steps=5,
    plan=RunPlan("scan", 4),
    program_bytes=9,
    seconds=3.0,
    compile_seconds=1.0,
    flops=80.0,
)


def test_rates_leave_compilation_aside():
    assert STATS.chunk == 4
    assert (STATS.run_seconds, STATS.runs_per_second, STATS.steps_per_second) == (2, 4, 20)
    assert STATS.flops_per_second == 40


def test_planning_is_no_part_of_the_rates():
    planned = replace(STATS, seconds=10.0, plan_seconds=7.0)
    assert (planned.run_seconds, planned.runs_per_second, planned.flops_per_second) == (2, 4, 40)


def test_rates_count_what_was_computed_now():
    half = replace(STATS, computed=0.5)
    assert (half.runs_per_second, half.steps_per_second, half.flops_per_second) == (2, 10, 20)


def test_unknown_operations_have_no_rate():
    assert replace(STATS, flops=None).flops_per_second is None


def test_rates_are_finite_if_no_time_has_passed():
    assert np.isfinite(replace(STATS, seconds=1.0).flops_per_second)


def test_peak_is_that_of_the_process_on_cpu():
    before = peak_bytes()
    block = np.ones(2**24)
    assert block.nbytes < peak_bytes() <= 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert peak_bytes() >= before
