"""The cost of a study: its models are those that it makes, and operations are counted by the compiler."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from jaxaudit.llm import LoraSpec, decoder
from jaxaudit.study import Candidates, EdgeAuditSpec, Study, outcome_cases, tuning_cases
from jaxaudit.study.cost import (
    Load,
    audit_line,
    cost_line,
    estimated_seconds,
    planned_models,
    token_operations,
    untrained_model,
)


def test_planned_models_are_those_that_a_study_makes(micro, micro_spec):
    study = Study(micro, micro_spec)
    edges, tuned = ["0_1", "1_2"], ["2_3"]
    rates = dict.fromkeys(micro_spec.methods, 1e-3)
    cases = {*tuning_cases(study, tuned), *outcome_cases(study, edges, rates)}
    kinds = [case.kind for case in cases]
    expected = Load(
        kinds.count("before") + kinds.count("retrained"), kinds.count("unlearned"), kinds.count("tried")
    )
    assert planned_models(micro_spec, len(edges), len(tuned)) == expected


def test_operations_are_about_those_of_the_lowered_program(micro):
    spec = replace(micro.model.spec, width=64, hidden=192)
    tokens = jax.tree.map(np.asarray, micro.tokens.tokens)
    model = decoder(spec)
    params = jax.eval_shape(model.init_fn, jax.random.key(0))
    counted = jax.jit(model.logits_fn).lower(params, tokens).cost_analysis()["flops"] / tokens.ids.size
    assert token_operations(spec, gradient=False) == pytest.approx(counted, rel=0.35)
    assert token_operations(spec, gradient=True) == 3 * token_operations(spec, gradient=False)
    adapters = token_operations(spec, gradient=True, adapters=True)
    assert adapters == 2 * token_operations(spec, gradient=False)


def test_seconds_follow_what_is_to_be_done(micro, micro_spec):
    def seconds(load, spec=micro_spec):
        return estimated_seconds(spec, load, micro.data, micro.model.spec, micro.tokens, speed=1e6)

    nothing, one = seconds(Load(0, 0, 0)), seconds(Load(1, 0, 0))
    assert 0 < nothing < one
    longer = replace(micro_spec, fine_tuning=replace(micro_spec.fine_tuning, epochs=11))
    more = 10 * micro.tokens.tokens.real.sum() * 6 * micro.model.spec.num_params / 1e6
    assert seconds(Load(1, 0, 0), longer) - one == pytest.approx(more)
    with_adapters = replace(longer, fine_tuning_lora=LoraSpec(rank=1))
    assert seconds(Load(1, 0, 0), with_adapters) < seconds(Load(1, 0, 0), longer)


def test_a_model_without_parameters_is_enough(micro, micro_spec):
    text, seconds = cost_line(micro_spec, micro.data, untrained_model(micro.data, "tiny"), 2, 1)
    assert "7 models fine-tuned or retrained, 20 unlearned, 10 more to choose rates" in text
    assert seconds > 0


def test_the_cost_of_an_audit_counts_what_is_read(micro, micro_spec):
    """Five runs, a run for rates and one for reference; 40 retained questions and 20 that are learnt and forgotten."""
    study = replace(micro_spec, seeds=(1,))
    spec = EdgeAuditSpec(study, ("npo", "kl"), num_calibration_runs=4, num_audit_runs=1, num_measured=1)
    text, seconds = audit_line(Candidates(micro, ("0_1", "2_3")), spec, speed=1e9)
    assert text.startswith("7 models fine-tuned, 10 unlearned, 4 more to choose rates; 420 questions read")
    assert "490 gradients" in text  # 5 + 2 times 20 questions, 1 for npo and 2.5 for the divergence
    assert audit_line(Candidates(micro, ("0_1", "2_3")), spec, speed=2e9)[1] == pytest.approx(seconds / 2)
