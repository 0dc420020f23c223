from dataclasses import asdict
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxaudit.analysis import Claim
from jaxaudit.audit import run_audit
from jaxaudit.data import AuditData, Examples, load
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.models import Model, mlp
from jaxaudit.pipeline import set_up
from jaxaudit.progress import SilentReporter
from jaxaudit.report.verify import verify
from jaxaudit.runs import COMPILATIONS, RunOptions
from jaxaudit.train import (
    Loop,
    SgdSpec,
    TrainingRun,
    TrainingShared,
    TrainState,
    cross_entropy_loss,
    training_loop,
)
from jaxaudit.unlearn import (
    METHODS,
    Problem,
    Unlearner,
    UnlearningSpec,
    build_methods,
    gradient_ascent,
    no_unlearning,
    release_noise,
    repeat,
)
from jaxaudit.unlearn.base import Certificate, Recipe


class Counted(NamedTuple):
    params: dict
    count: jax.Array


GROUPS = 40
DATA = load("digits", seed=0, num_groups=GROUPS, num_holdout=1597)
MODEL = mlp((64,), 10, hidden=(32,))
LOSS = cross_entropy_loss(MODEL.logits_fn)
TRAINING = SgdSpec(40, 0.3)
DESIGN = AuditDesign(num_groups=GROUPS, num_calibration_runs=16, num_audit_runs=6)


def build(*names, spec=None):
    problem = Problem(
        loss_fn=LOSS,
        logits_fn=MODEL.logits_fn,
        num_classes=10,
        training=TRAINING,
        spec=spec or UnlearningSpec(),
        num_retain=DATA.num_retain,
        num_forget=GROUPS // 2,
    )
    return build_methods(tuple(METHODS[name] for name in names), problem)


def run(methods, design=DESIGN, **options):
    return run_audit(DATA, MODEL, methods, design, **{"training": TRAINING, **options})


@pytest.fixture(scope="module")
def report():
    return run(build("none", "retain-finetune", "ascent", "retrain"), claim=Claim(0.5))


def by_name(report):
    return {method.name: method for method in report.methods}


def test_a_model_that_kept_its_data_is_caught_and_retraining_is_not(report):
    methods = by_name(report)
    assert methods["none"].analysis.epsilon > 1
    assert methods["none"].analysis.verdict.falsified
    assert methods["none"].forget_accuracy > methods["retrain"].forget_accuracy
    retrained = methods["retrain"].analysis
    assert retrained.no_evidence
    assert retrained.epsilon == retrained.soft.epsilon == retrained.paper.epsilon == 0.0
    assert not retrained.verdict.falsified


def test_retraining_gives_the_same_scores_in_every_run(report):
    scores = np.concatenate(
        [getattr(by_name(report)["retrain"], part).scores for part in ("calibration", "audited")]
    )
    np.testing.assert_array_equal(scores, np.broadcast_to(scores[:1], scores.shape))


def test_how_far_the_parameters_moved(report):
    methods = by_name(report)
    assert methods["none"].moved == 0.0
    assert 0 < methods["retain-finetune"].moved < methods["retrain"].moved


def test_runs_are_numbered_and_disjoint(report):
    for method in report.methods:
        assert method.calibration.run_ids.tolist() == list(range(16))
        assert method.audited.run_ids.tolist() == list(range(16, 22))


def test_calibration_signs_come_in_complementary_pairs(report):
    signs = report.methods[0].calibration.signs
    np.testing.assert_array_equal(signs[0::2], -signs[1::2])


def test_noise_keys_never_repeat(report):
    keys = np.concatenate([method.noise_keys for method in report.methods])
    assert len(np.unique(keys, axis=0)) == len(keys) == 4 * 22


def test_same_seed_same_bits_other_seed_other_runs():
    design = DESIGN.replace(num_calibration_runs=4, num_audit_runs=2)
    training = SgdSpec(1, 0.3)
    one, same, other = (
        run(build("none"), design, training=training, seed=seed).methods[0] for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one.audited.scores, same.audited.scores)
    assert (one.audited.signs != other.audited.signs).any()
    assert abs(one.audited.scores - other.audited.scores).max() > 0


def test_a_run_that_diverges_is_flagged_and_changes_no_other():
    """A method that destroys the parameters in about a quarter of the runs, by their keys."""

    def update(key, state, batch):
        broken = jax.random.key_data(key)[0] % 4 == 1
        return state._replace(params=jax.tree.map(lambda p: jnp.where(broken, jnp.nan, p), state.params)), {}

    saboteur = Unlearner(lambda key, trained: trained, update, 1)
    design = DESIGN.replace(num_calibration_runs=16, num_audit_runs=6)
    report = run({"saboteur": saboteur, "none": no_unlearning()}, design, seed=2)
    broken, healthy = report.methods
    failed = np.concatenate([broken.calibration.failed, broken.audited.failed])
    assert failed.any()
    assert not failed.all()
    for part in ("calibration", "audited"):
        mine, theirs = getattr(broken, part), getattr(healthy, part)
        np.testing.assert_array_equal(mine.scores[~mine.failed], theirs.scores[~mine.failed])
    assert (broken.analysis.overlaps[broken.audited.failed] == 0).all()
    assert broken.analysis.failed_audited == tuple(broken.audited.run_ids[broken.audited.failed])


def test_ascent_uses_the_forget_set_of_its_own_run():
    """After strong ascent each run does badly on what it had, and not on what it never saw."""
    method = gradient_ascent(LOSS, optimizer=optax.sgd(0.05), num_updates=8)
    result = run({"ascent": method}).methods[0]
    scores, signs = result.audited.scores[:, :, 0], result.audited.signs
    base = run({"none": no_unlearning()}).methods[0].audited.scores[:, :, 0]
    fallen = base - scores
    assert fallen[signs == 1].mean() > fallen[signs == -1].mean()


def test_training_of_your_own_is_a_loop_with_params():
    optimizer = optax.adam(0.01)

    def init(run, shared):
        return TrainState(shared.initial_params, optimizer.init(shared.initial_params))

    def body(step, state, run, shared):
        batch = jax.tree.map(lambda leaf: leaf[run.members], shared.pool)
        gradient = jax.grad(LOSS)(state.params, batch)
        updates, optimizer_state = optimizer.update(gradient, state.optimizer_state)
        return TrainState(optax.apply_updates(state.params, updates), optimizer_state)

    report = run({"none": no_unlearning()}, training=Loop(init, body, 60))
    assert report.methods[0].retain_accuracy > 0.9
    assert report.spec["training"] == "user loop"


def test_random_training_has_a_key_of_its_own_in_every_run():
    """Training that only adds noise to x0: every run must end elsewhere."""

    def body(step, state, run, shared):
        noise = jax.random.normal(jax.random.fold_in(run.key, step), state.params["Dense_0"]["bias"].shape)
        params = {**state.params, "Dense_0": {**state.params["Dense_0"], "bias": noise}}
        return state._replace(params=params)

    training = Loop(lambda run, shared: TrainState(shared.initial_params, ()), body, 1)
    design = DESIGN.replace(num_calibration_runs=4, num_audit_runs=3)
    scores = run({"none": no_unlearning()}, design, training=training).methods[0].audited.scores
    assert len(np.unique(scores[:, 0, 0])) == 3


def test_equal_stages_of_a_method_have_different_noise():
    design = DESIGN.replace(num_calibration_runs=4, num_audit_runs=2)
    methods = {"once": release_noise(sigma=1.0), "twice": repeat(release_noise(sigma=1.0), 2)}
    once, twice = run(methods, design, training=SgdSpec(0, 0.1)).methods
    assert 1.2 < twice.moved / once.moved < 1.6  # the square root of 2; equal noise would double it


def test_a_second_audit_compiles_nothing():
    design = DESIGN.replace(num_calibration_runs=4, num_audit_runs=2)
    run(build("ascent"), design, training=SgdSpec(1, 0.3))
    before = COMPILATIONS.count
    again = run(build("ascent"), design, training=SgdSpec(1, 0.3), seed=8)
    assert COMPILATIONS.count == before
    assert again.methods[0].moved > 0


def test_methods_that_all_fail_do_not_take_the_others_along():
    def update(key, state, batch):
        return state._replace(params=jax.tree.map(lambda leaf: leaf * jnp.nan, state.params)), {}

    broken = Unlearner(lambda key, trained: trained, update, 1)
    report = run({"broken": broken, "none": no_unlearning()}, claim=Claim(0.5))
    assert report.methods[0].analysis.epsilon == 0.0
    assert report.methods[0].moved is None
    assert any("too many calibration runs failed" in note for note in report.methods[0].analysis.notes)
    assert report.methods[1].analysis.epsilon > 0.5


def test_mistakes_are_found_before_training():
    def init(run, shared):
        raise AssertionError("trained")

    training = Loop(init, lambda *args: None, 1)
    for design, methods, message in (
        (DESIGN, {"my method": no_unlearning()}, "method name must be non-empty without slashes or spaces"),
        (DESIGN.replace(num_groups=42), {"none": no_unlearning()}, "design.num_groups"),
    ):
        with pytest.raises(InputError, match=message):
            run(methods, design, training=training)


def test_a_design_that_can_show_nothing_is_said_before_training():
    said = []

    class Listener(SilentReporter):
        def say(self, text):
            said.append(text)

    design = DESIGN.replace(num_guesses=2, num_calibration_runs=4, num_audit_runs=1)
    run({"none": no_unlearning()}, design, training=SgdSpec(0, 0.1), reporter=Listener())
    assert said == ["note: this design cannot show any epsilon above 0"]


def test_a_small_memory_budget_changes_nothing_but_the_chunks():
    design = DESIGN.replace(num_calibration_runs=4, num_audit_runs=2)
    whole, parts = (
        run(build("none"), design, training=SgdSpec(2, 0.3), options=RunOptions(memory_budget=budget))
        for budget in (2**31, 2**18)
    )
    assert parts.timings["runs_at_once"] < whole.timings["runs_at_once"] == 6
    np.testing.assert_allclose(parts.methods[0].audited.scores, whole.methods[0].audited.scores, rtol=1e-4)


def test_a_given_starting_point_is_used():
    params = MODEL.init_fn(jax.random.key(123))
    design = DESIGN.replace(num_calibration_runs=4, num_audit_runs=1)
    drawn, given = (
        run({"none": no_unlearning()}, design, training=SgdSpec(0, 0.1), initial_params=start)
        .methods[0]
        .audited
        for start in (None, params)
    )
    flat = DATA.groups.x[:, 0]
    logits = MODEL.logits_fn(params, flat)
    np.testing.assert_array_equal(
        given.scores[0, :, 0] > 0,
        np.asarray(jax.nn.softmax(logits)[np.arange(GROUPS), DATA.groups.y[:, 0]] > 0.5),
    )
    assert abs(drawn.scores - given.scores).max() > 0


def test_joint_predictor_on_a_small_design():
    data = load("digits", seed=0, num_groups=4, group_size=10, num_holdout=1657)
    design = AuditDesign(num_groups=4, num_calibration_runs=24, num_audit_runs=10, predictor="joint")
    report = run_audit(data, MODEL, {"none": no_unlearning()}, design, training=SgdSpec(60, 0.3))
    analysis = report.methods[0].analysis
    assert analysis.selection.num_guesses == 4
    assert analysis.epsilon > 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"design": DESIGN.replace(num_groups=42)}, "design.num_groups must be that of the data, 40, got 42"),
        ({"methods": {}}, "at least one unlearning method"),
        ({"score": "token-cross-entropy"}, "score must be one of logit, cross-entropy, got 'token"),
        (
            {"methods": {"a@1": no_unlearning()}},
            "method name must be without '@', which marks iterates on the way",
        ),
        (
            {"methods": {"a": Recipe(no_unlearning(), record_at=(1,))}},
            "record_at must be an integer between 1 and 0",
        ),
        (
            {"methods": {"a": Recipe(no_unlearning(), rewind_updates=10**6)}},
            "rewind_updates must be an integer",
        ),
        (
            {"methods": {"a": Recipe(no_unlearning(), sizes=(100, 1))}},
            r"method 'a' must be built for the data's \d+ retain and 20 forget examples, got one for 100 and 1",
        ),
        ({"score": "margin"}, "score must be one of logit, cross-entropy, got 'margin'"),
    ],
)
def test_arguments_that_do_not_fit(change, message):
    with pytest.raises(InputError, match=message):
        run(**{"methods": {"none": no_unlearning()}, **change})


SMALL = DESIGN.replace(num_calibration_runs=4, num_audit_runs=3)
QUICK = SgdSpec(1, 0.3)


@pytest.mark.slow
def test_runs_of_a_noisy_method_differ_although_they_share_a_trained_model():
    """Four groups have 6 sign vectors; 17 runs share their models, but never their noise."""
    data = load("digits", seed=0, num_groups=4, group_size=2, num_holdout=1697)
    design = AuditDesign(num_groups=4, num_calibration_runs=12, num_audit_runs=5, predictor="joint")
    methods = {"none": no_unlearning(), "noise": release_noise(sigma=0.1), "more": release_noise(sigma=0.1)}
    report = run_audit(data, MODEL, methods, design, training=QUICK)
    assert report.timings["phases"][0]["runs"] == 6
    none, *noisy = report.methods
    signs = np.concatenate([none.calibration.signs, none.audited.signs])
    scores = {
        method.name: np.concatenate([method.calibration.scores, method.audited.scores]).reshape(17, -1)
        for method in report.methods
    }
    assert len(np.unique(scores["none"], axis=0)) == len(np.unique(signs, axis=0)) == 6
    assert len(np.unique(np.concatenate([scores[method.name] for method in noisy]), axis=0)) == 2 * 17
    keys = np.concatenate([method.noise_keys for method in report.methods])
    assert len(np.unique(keys, axis=0)) == len(keys) == 3 * 17


def test_iterates_on_the_way_are_results_of_their_own(tmp_path):
    descent = gradient_ascent(LOSS, optimizer=optax.sgd(0.05), num_updates=6)
    certificate = Certificate(1.0, 1e-5, "Theorem 3.1")
    methods = {
        "ascent": Recipe(descent, certificate, record_at=(4, 2), title="ascent"),
        "short": descent._replace(num_updates=4),
    }
    report = run(methods, training=QUICK, claim=Claim(0.5))
    assert [method.name for method in report.methods] == ["ascent@2", "ascent@4", "ascent", "short"]
    early, late, end, short = report.methods
    assert (early.recorded_at, late.recorded_at, end.recorded_at) == (2, 4, None)
    assert [method.cost for method in report.methods] == [2 * 64, 4 * 64, 6 * 64, 4 * 64]
    assert late.title == "ascent after 4 updates"
    np.testing.assert_array_equal(late.audited.scores, short.audited.scores)  # ascent draws no noise
    assert abs(late.audited.scores - end.audited.scores).max() > 0
    np.testing.assert_array_equal(early.noise_keys, end.noise_keys)
    assert end.certificate == certificate
    assert early.certified is late.certified is False
    assert "on the way" in early.certificate.reason
    assert (early.seconds, end.seconds is not None) == (None, True)
    assert verify(report.save(tmp_path / "report")).ok


def test_methods_may_bring_a_training_of_their_own():
    own = SgdSpec(2, 0.1)
    methods = {
        "a": no_unlearning(),
        "b": Recipe(no_unlearning(), training=own, title="b"),
        "c": Recipe(no_unlearning(), training=SgdSpec(1, 0.3), title="c"),
    }
    report = run(methods, SMALL, training=QUICK)
    a, b, c = (method.audited.scores for method in report.methods)
    np.testing.assert_array_equal(a, c)
    np.testing.assert_array_equal(
        b, run({"a": no_unlearning()}, SMALL, training=own).methods[0].audited.scores
    )
    assert report.spec["training"]["training-2"] == {"methods": ["b"], "spec": asdict(own)}
    assert [phase["name"] for phase in report.timings["phases"] if "train" in phase["name"]] == [
        "train",
        "train-2",
    ]


def test_random_trainings_of_one_audit_share_no_noise():
    def body(step, state, run, shared):
        return state._replace(
            params=jax.tree.map(lambda p: p + jax.random.normal(run.key, p.shape), state.params)
        )

    one = Loop(lambda run, shared: TrainState(shared.initial_params, ()), body, 1)
    two = one._replace(body=lambda *arguments: body(*arguments))
    methods = {"a": no_unlearning(), "b": Recipe(no_unlearning(), training=two, title="b")}
    first, second = (method.audited.scores for method in run(methods, SMALL, training=one).methods)
    assert (first != second).all()


def test_a_training_that_diverges_in_one_run_changes_no_other():
    """Run 3 (calibration) and run 5 (audited) blow up by themselves, by their own members."""

    def training(broken):
        victims = jnp.asarray(members[list(broken)])

        def body(step, state, run, shared):
            rate = jnp.where((run.members == victims).all(axis=1).any(), 1e30, 0.3)
            batch = jax.tree.map(lambda leaf: leaf[run.members], shared.pool)
            gradient = jax.grad(LOSS)(state.params, batch)
            return state._replace(params=jax.tree.map(lambda p, g: p - rate * g, state.params, gradient))

        return Loop(lambda run, shared: TrainState(shared.initial_params, ()), body, 5, deterministic=True)

    members = np.asarray(set_up(DATA, MODEL, SMALL, seed=0).members)
    methods = {"none": no_unlearning(), "noise": release_noise(sigma=0.01)}
    broken, healthy = (run(methods, SMALL, training=training(ids)).methods for ids in ((3, 5), ()))
    for mine, theirs in zip(broken, healthy, strict=True):
        assert mine.analysis.failed_calibration == (3,)
        assert mine.analysis.failed_audited == (5,)
        assert "failed calibration runs, left out of the fit: 3" in mine.notes
        assert "failed audited runs, counted as no evidence: 5" in mine.notes
        assert mine.audited.run_ids.tolist() == [4, 5, 6]
        for part in ("calibration", "audited"):
            ours, other = getattr(mine, part), getattr(theirs, part)
            assert not other.failed.any()
            np.testing.assert_array_equal(ours.scores[~ours.failed], other.scores[~ours.failed])


def test_measures_are_summarised_over_all_runs():
    """The sum of the labels of what is forgotten, not finite where it is even."""

    def update(key, state, batch):
        return state._replace(count=jnp.sum(batch.forget.y * batch.forget.weights)), {}

    def measure(state):
        return {"sum": jnp.where(state.count % 2 == 0, jnp.inf, state.count), "never": state.count * jnp.nan}

    stage = Unlearner(
        lambda key, trained: Counted(trained.params, jnp.float32(0)), update, 1, measure=measure
    )
    (result,) = run({"count": stage}, SMALL, training=SgdSpec(0, 0.1)).methods
    signs = np.concatenate([result.calibration.signs, result.audited.signs])
    sums = (signs == 1) @ DATA.groups.y[:, 0]
    odd = sums[sums % 2 == 1]
    assert 0 < len(odd) < len(sums)
    expected = {"mean": odd.mean(), "min": odd.min(), "max": odd.max(), "not_finite": len(sums) - len(odd)}
    assert result.measured == {"sum": pytest.approx(expected), "never": {"not_finite": 7}}
    assert "never was not finite in 7 runs" in result.notes


def test_how_every_computation_was_carried_out_is_told():
    report = run({"none": no_unlearning()}, SMALL, training=QUICK, options=RunOptions(chunk=2))
    phases = {phase["name"]: phase for phase in report.timings["phases"]}
    assert list(phases) == ["train", "none: stage 1 of 1", "none: score"]
    assert (phases["train"]["strategy"], phases["train"]["runs_at_once"], phases["train"]["runs"]) == (
        "scan",
        2,
        7,
    )
    assert phases["train"]["steps"] == QUICK.num_updates(DATA.num_retain + GROUPS // 2)
    assert report.timings["training_seconds"] == phases["train"]["seconds"] > 0


def test_no_key_is_used_twice():
    design = DESIGN.replace(num_calibration_runs=4, num_audit_runs=2)
    with jax.debug_key_reuse(True):
        run(build("none", "ascent"), design, training=SgdSpec(1, 0.3))


def test_text_is_audited_by_the_windows_that_are_scored():
    """A bigram table per run: its scores are the means over tokens, and only the first window of a group counts."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 4, (30 + 12 * 3, 9))
    windows = Examples(tokens[:, :-1], tokens[:, 1:], np.ones(len(tokens)))
    retain, rest = (
        jax.tree.map(lambda leaf, rows=rows: leaf[rows], windows) for rows in (slice(30), slice(30, None))
    )
    groups = jax.tree.map(lambda leaf: leaf.reshape(12, 3, *leaf.shape[1:]), rest)
    ids = tuple((f"chunk {number}",) for number in range(12))
    data = AuditData("text", retain, groups, retain, ids, num_classes=4, description="", num_scored=1)
    model = Model(lambda key: jnp.zeros((4, 4)), lambda params, x: params[x], "bigrams")
    design = AuditDesign(num_groups=12, num_calibration_runs=6, num_audit_runs=3, num_guesses=4)
    options = {"training": SgdSpec(3, 1.0, batch_size=8), "score": "token-cross-entropy"}
    report = run_audit(data, model, {"none": no_unlearning()}, design, **options)
    (method,) = report.methods
    assert method.audited.scores.shape == (3, 12, 1)
    assert report.data["num_scored"] == 1

    setup = set_up(data, model, design, seed=0)
    loop = training_loop(cross_entropy_loss(model.logits_fn), options["training"], setup.members.shape[1])
    run = TrainingRun(setup.members[6], setup.keys[6])  # the first audited one
    shared = TrainingShared(setup.shared.pool, setup.shared.initial_params)
    state = loop.init(run, shared)
    for step in range(loop.num_steps):
        state = loop.body(step, state, run, shared)
    log_p = np.asarray(jax.nn.log_softmax(state.params), np.float64)
    first = groups.x[:, 0], groups.y[:, 0]
    np.testing.assert_allclose(method.audited.scores[0, :, 0], log_p[first].mean(axis=1), rtol=1e-4)
    with pytest.raises(InputError, match="score must be one of token-cross-entropy, got 'logit'"):
        run_audit(data, model, {"none": no_unlearning()}, design, training=options["training"])
