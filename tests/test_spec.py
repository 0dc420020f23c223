"""Specs: what is carried out is what the parts would do, and everything is checked before training."""

from contextlib import nullcontext
from dataclasses import replace

import jax
import numpy as np
import pytest

from jaxaudit import data, unlearn
from jaxaudit.analysis import Claim
from jaxaudit.audit import run_audit
from jaxaudit.checkpoint import save_params
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.keys import stream_key
from jaxaudit.models import mlp
from jaxaudit.rules import Rules
from jaxaudit.spec import CertifiedDesign, RunSpec, run_spec, run_suites
from jaxaudit.train import SgdSpec, cross_entropy_loss
from jaxaudit.unlearn import ClippingSpec, UnlearningSpec

TINY = RunSpec(
    num_groups=20,
    num_holdout=1700,
    methods=("none", "retain-finetune"),
    hidden=(8,),
    num_calibration_runs=6,
    num_audit_runs=3,
    training=SgdSpec(epochs=2, learning_rate=0.3),
    unlearning=UnlearningSpec(
        finetune=SgdSpec(epochs=1, learning_rate=0.1), ascent=SgdSpec(epochs=1, learning_rate=0.02)
    ),
    seed=5,
)


class Recorder:
    """A reporter that remembers what was said."""

    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)

    def task(self, label, total):
        return nullcontext(lambda steps: None)


@pytest.fixture(scope="module")
def report():
    return run_spec(replace(TINY, claim_epsilon=0.5, claim_delta=1e-6))


def test_report_is_that_of_the_parts(report):
    records = data.load("digits", seed=5, num_groups=20, num_holdout=1700)
    assert records.num_retain == 77
    model = mlp((64,), 10, (8,))
    finetune = SgdSpec(epochs=1, learning_rate=0.1)
    methods = {
        "none": unlearn.no_unlearning(),
        "retain-finetune": unlearn.retain_finetune(
            cross_entropy_loss(model.logits_fn), optimizer=finetune.optimizer(2), num_updates=2
        ),
    }
    design = AuditDesign(num_groups=20, num_calibration_runs=6, num_audit_runs=3)
    expected = run_audit(
        records, model, methods, design, training=SgdSpec(epochs=2, learning_rate=0.3), seed=5
    )
    for found, wanted in zip(report.methods, expected.methods, strict=True):
        assert found.name == wanted.name
        np.testing.assert_array_equal(found.audited.signs, wanted.audited.signs)
        np.testing.assert_allclose(found.audited.scores, wanted.audited.scores, rtol=1e-6)
        assert found.analysis.direct == wanted.analysis.direct


def test_report_holds_the_whole_spec_and_the_claim(report):
    assert report.claim == Claim(0.5, 1e-6)
    assert report.spec["run"]["methods"] == ("none", "retain-finetune")
    assert report.spec["run"]["unlearning"]["ascent"]["learning_rate"] == 0.02
    assert report.spec["run"]["rules"]["significance"] == 0.05
    assert report.as_dict()["spec"]["run"]["hidden"] == [8]


def test_cost_is_said_before_training_and_counts_the_batches_of_each_stage():
    recorder = Recorder()
    finetune = SgdSpec(epochs=1, learning_rate=0.1, batch_size=16)
    spec = replace(
        TINY,
        methods=("none", "retain-finetune", "ascent", "retrain"),
        num_audit_runs=1,
        training=replace(TINY.training, batch_size=32),
        unlearning=replace(TINY.unlearning, finetune=finetune),
    )
    run_spec(spec, recorder)
    # 77 retain records, 10 more of the run's own groups: 3 batches of 32 each, 5 of 16; 10 forget records: 1 batch.
    assert recorder.lines[0] == (
        "6 calibration and 1 audited runs of MLP 64-8-10, ReLU on digits: 6 updates of training each; "
        "then of unlearning: none 0, retain-finetune 5, ascent 6, retrain 6"
    )


def test_training_can_start_from_a_checkpoint(tmp_path, report):
    model = mlp((64,), 10, (8,))
    drawn = model.init_fn(stream_key(5, "init"))
    save_params(tmp_path / "drawn", drawn)
    save_params(tmp_path / "other", jax.tree.map(lambda leaf: leaf + 0.1, drawn))
    spec = replace(TINY, methods=("none",))
    same, other = (
        run_spec(replace(spec, initial_params=str(tmp_path / name))).methods[0].audited.scores
        for name in ("drawn", "other")
    )
    np.testing.assert_array_equal(same, report.methods[0].audited.scores)
    assert np.abs(other - same).max() > 1e-3


def test_own_records_and_own_request(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "mine.npz",
        x=rng.normal(size=(40, 3, 2)),
        y=rng.integers(0, 3, 40),
        ids=np.arange(100, 140),
    )
    spec = replace(
        TINY, data=str(tmp_path / "mine.npz"), forget_ids="100,105-109", num_groups=None, num_holdout=None
    )
    report = run_spec(spec)
    assert report.record_ids == (("100",), ("105",), ("106",), ("107",), ("108",), ("109",))
    assert report.data["num_classes"] == 3
    assert report.design.num_groups == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ("forget",)}, "methods must be all, or some of none"),
        (
            {"score": "token-cross-entropy"},
            "score must be one of logit, cross-entropy, got 'token-cross-entropy'",
        ),
        (
            {"rules": Rules(num_guesses=22)},
            "num_guesses must be an integer between 2 and 20, got 22",
        ),
        ({"num_groups": 1}, "num_groups must be an integer of at least 2, got 1"),
        ({"data": "mnist"}, "data must be 'digits' or a .npz or .csv file, got 'mnist'"),
        ({"hidden": (0,)}, "hidden widths"),
        ({"initial_params": "nowhere"}, "no Orbax checkpoint at"),
        ({"claim_delta": 0.1}, "claim_delta needs claim_epsilon"),
        ({"num_audit_runs": 0}, "num_audit_runs must be an integer of at least 1, got 0"),
    ],
)
def test_mistakes_are_found_before_training(changes, message):
    recorder = Recorder()
    with pytest.raises(InputError, match=message):
        run_spec(replace(TINY, **changes), recorder)
    assert recorder.lines == []


def test_checkpoint_of_another_network(tmp_path):
    save_params(tmp_path / "x0", mlp((64,), 10, (9,)).init_fn(stream_key(0, "init")))
    with pytest.raises(InputError, match=r"parameter 'Dense_0/\w+' has shape \(.*9.*\), the model needs"):
        run_spec(replace(TINY, initial_params=str(tmp_path / "x0")))


CERTIFIED = RunSpec(
    methods=("none", "clipping"),
    num_holdout=1700,
    num_groups=24,
    hidden=(8,),
    training=SgdSpec(epochs=1, learning_rate=0.3),
    unlearning=UnlearningSpec(
        clipping=ClippingSpec(num_noisy_updates=2), clipping_finetune=SgdSpec(epochs=1, learning_rate=0.1)
    ),
    certified=CertifiedDesign(num_groups=4, num_calibration_runs=12, num_audit_runs=2),
)


def test_certified_methods_get_a_design_of_their_own():
    report = run_spec(CERTIFIED)
    assert [method.name for method in report.methods] == ["none", "clipping"]
    assert (report.design.predictor, report.design.num_groups) == ("joint", 4)
    assert report.data["group_size"] == 24 // 4
    assert (
        len(np.unique(report.methods[1].audited.scores[:, 0, 0])) == 2
    )  # every draw of the noise is a new model


@pytest.mark.slow
def test_one_audit_per_suite():
    spec = replace(TINY, methods=("none", "newton"), certified=CERTIFIED.certified)
    comparison = run_suites(replace(spec, methods=("none", "retain-finetune", "output-perturbation")))
    assert {name: [one.name for one in report.methods] for name, report in comparison.reports.items()} == {
        "heuristic": ["none", "retain-finetune"],
        "convex": ["none", "output-perturbation"],
    }
    assert comparison.reports["convex"].spec["model"].startswith("softmax regression")


def test_methods_of_several_suites_are_no_single_report():
    with pytest.raises(InputError, match="methods must fit one design, got some for heuristic and certified"):
        run_spec(replace(CERTIFIED, methods=("ascent", "clipping")))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"num_groups": 2},
            "certified.num_groups must be at most the number of candidate records, .* 2, got 4",
        ),
        ({"certified": CertifiedDesign(num_groups=5)}, "certified.num_groups must be even .*, got 5"),
        (
            {"certified": CertifiedDesign(num_groups=16)},
            "certified.num_groups must be so small .* got 16, which need",
        ),
        (
            {"forget_ids": "0-59", "num_groups": None},
            "forget_ids: the number of groups must be so small .* got 60, which need",
        ),
        (
            {"model": "tinynet", "image_shape": (7, 8, 1)},
            "image_shape must hold the 64 features",
        ),
    ],
)
def test_impossible_certified_designs(changes, message):
    with pytest.raises(InputError, match=message):
        run_spec(replace(CERTIFIED, **changes))


@pytest.mark.slow
def test_a_convolutional_network_can_be_audited():
    spec = replace(
        TINY, model="tinynet", widths=(8, 8), methods=("none",), num_calibration_runs=4, num_audit_runs=1
    )
    reporter = Recorder()
    report = run_spec(spec, reporter)
    assert report.spec["model"].startswith("TinyNet")
    assert any(line.startswith("model: a step of one run takes") for line in reporter.lines)
