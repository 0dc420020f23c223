import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.runs import COMPILATIONS, RunOptions, RunPlan
from jaxaudit.runs.programs import Shapes, step_facts
from jaxaudit.runs.strategies import Job
from jaxaudit.train import Loop
from tests.runs.waves import make_runs, wave


def product(num_steps=3, n=16):
    loop = Loop(lambda run, shared: run, lambda step, carry, run, shared: carry @ shared, num_steps)
    return loop, jnp.ones((4, n, n)), jnp.eye(n)


def test_shapes_are_those_of_one_run_and_hashable():
    one = Shapes.of(make_runs(3), 0.3)
    assert hash(one) == hash(Shapes.of(make_runs(5), 0.3))
    assert one == Shapes.of(make_runs(5), 0.7)
    per_run, shared = one.arguments()
    assert per_run["start"].shape == (3,)
    assert per_run["key"].shape == ()
    assert shared.dtype == jnp.float32


def test_programs_are_made_once_and_compiled_when_needed():
    loop, per_run, shared = product()
    job = Job.of(loop, per_run, shared, RunOptions())
    before = COMPILATIONS.count
    made = job.program(RunPlan("scan", 4))
    assert made is job.program(RunPlan("scan", 4))
    assert (COMPILATIONS.count, made.bytes_so_far()) == (before, 0)
    assert made.bytes() == made.bytes_so_far() > 0
    assert COMPILATIONS.count == before + 2
    assert COMPILATIONS.seconds > 0


def test_memory_counts_arguments_and_carry():
    """A program that keeps 4 matrices per run needs their bytes, and not many times as many."""
    loop, per_run, shared = product(n=128)
    job = Job.of(loop, per_run, shared, RunOptions())
    matrices = 4 * 128 * 128 * 4
    assert 2 * matrices <= job.program(RunPlan("scan", 4)).bytes() <= 5 * matrices


def test_facts_of_a_step():
    loop, per_run, shared = product(n=16)
    facts = step_facts(loop, Shapes.of(per_run, shared))
    assert facts.flops == 2 * 16**3
    assert not facts.has_convolution
    assert facts.result_bytes == 16 * 16 * 4


def test_facts_of_a_loop_without_steps_are_those_of_its_init():
    loop = Loop(lambda run, shared: run @ shared, None, 0)
    assert step_facts(loop, Shapes.of(jnp.ones((4, 8, 8)), jnp.eye(8))).flops == 2 * 8**3


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.checkpoint])
def test_convolutions_are_found_inside_of_other_functions(wrap):
    loop = wave(3, convolution=True)
    hidden = loop._replace(body=lambda *arguments: wrap(loop.body)(*arguments))
    assert step_facts(hidden, Shapes.of(make_runs(2), 0.3)).has_convolution


def test_a_gradient_through_a_scan_is_looked_into():
    def loss(x):
        return jax.lax.scan(lambda c, _: (jnp.convolve(c, jnp.ones(3), "same"), None), x, None, 2)[0].sum()

    loop = Loop(lambda run, _: run, lambda step, carry, run, _: jax.grad(loss)(carry), 2)
    assert step_facts(loop, Shapes.of(jnp.ones((2, 5)), None)).has_convolution
    assert not step_facts(wave(2), Shapes.of(make_runs(2), 0.3)).has_convolution


@pytest.mark.parametrize(
    ("precision", "own", "expected"),
    [
        ("highest", None, "HIGHEST"),
        ("high", "highest", "HIGH,"),
        ("default", None, "None"),
        ("default", "highest", "HIGHEST"),
    ],
)
def test_matrix_products_state_their_precision(precision, own, expected):
    """Before the compiler has seen it, since it drops what its backend does not know; "default" is the user's own."""
    seen = []

    def body(step, carry, run, shared):
        jaxpr = jax.make_jaxpr(lambda: carry @ shared)()
        seen.extend(re.findall(r"precision=(.*)", str(jaxpr)))
        return carry @ shared

    loop, per_run, shared = product()
    job = Job.of(loop._replace(body=body), per_run, shared, RunOptions(matmul_precision=precision))
    with jax.default_matmul_precision(own):
        job.program(RunPlan("scan", 4)).bytes()
    assert expected in (seen or ["None"])[-1]  # JAX does not print a precision of None


def test_the_caller_keeps_the_arguments_and_the_carry_is_used_up():
    loop, per_run, shared = product()
    job = Job.of(loop, per_run, shared, RunOptions())
    made = job.program(RunPlan("step", 4))
    carry = made.start(per_run, shared)
    final = made.advance(carry, 0, 3, per_run, shared)
    np.testing.assert_allclose(final, per_run)
    assert carry.is_deleted()
    assert not per_run.is_deleted()
