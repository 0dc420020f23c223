import json
from dataclasses import asdict

import pytest

from jaxaudit.errors import InputError
from jaxaudit.runs import DEFAULT_MEMORY_BUDGET, RunOptions, RunPlan


def test_defaults_are_automatic_and_precise():
    options = RunOptions()
    assert (options.strategy, options.chunk, options.num_devices) == ("auto", "auto", None)
    assert options.matmul_precision == "highest"
    assert options.memory_budget == DEFAULT_MEMORY_BUDGET == 2 * 1024**3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"strategy": "fast"}, "strategy must be one of auto, scan, step, sequential, got 'fast'"),
        ({"matmul_precision": "tf32"}, "matmul_precision must be one of highest, high, default, got 'tf32'"),
        ({"chunk": 0}, "chunk must be at least 1 or 'auto', got 0"),
        ({"chunk": True}, "chunk must be at least 1 or 'auto', got True"),
        ({"chunk": "all"}, "chunk must be at least 1 or 'auto', got all"),
        ({"memory_budget": 0}, "memory_budget must be at least 1 byte, got 0"),
        ({"num_devices": 0}, "num_devices must be at least 1 or None, got 0"),
    ],
)
def test_bad_options(wrong, message):
    with pytest.raises(InputError, match=message):
        RunOptions(**wrong)


@pytest.mark.parametrize("plan", [RunPlan("sequential", 7), RunPlan("scan", 60, 4)])
def test_a_plan_survives_json(plan):
    assert RunPlan(**json.loads(json.dumps(asdict(plan)))) == plan


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("auto", 3), "strategy must be one of scan, step, sequential"),
        (("scan", 0), "chunk must be at least 1, got 0"),
        (("scan", 4, 0), "block must be at least 1, got 0"),
    ],
)
def test_bad_plans(wrong, message):
    with pytest.raises(InputError, match=message):
        RunPlan(*wrong)
