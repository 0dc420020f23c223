"""CIFAR-100 experiments: every script runs, reads the right runs, and its audited draws are independent."""

import importlib
import json
import math
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import optax
import pytest

from jaxaudit.analysis import analyse
from jaxaudit.audit import run_audit
from jaxaudit.pipeline.setup import set_up
from jaxaudit.progress import SilentReporter
from jaxaudit.train import cross_entropy_loss

FOLDER = Path(__file__).parents[2] / "experiments"
RESULTS = FOLDER / "results"
SCRIPTS = {
    "table1b": "table1b_cifar100",
    "table3": "table3_scores",
    "table4": "table4_aggregation",
    "table5": "table5_batch_size",
    "table6": "table6_model_clipping",
    "table7": "table7_hessian_noise",
    "fig1a": "fig1a_uncertified_clipping",
    "fig1b": "fig1b_pairwise",
    "fig1c": "fig1c_rewind",
}


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def lab(store):
    jobs, presets = (importlib.import_module(name) for name in ("cifar100_jobs", "cifar100_presets"))
    preset = replace(presets.SMOKE, seeds=(0,))
    return jobs.Lab(preset, "digits", store, SilentReporter())


def run(script, *arguments):
    module = importlib.import_module(script)
    return importlib.import_module("cifar100").main(module.SCRIPT, module.__doc__, list(arguments))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "script"), SCRIPTS.items())
def test_smoke_writes_table_page_and_figure(name, script, store, tmp_path, capsys):
    arguments = (
        "--preset",
        "smoke",
        "--data",
        "digits",
        "--store",
        str(store),
        "--out",
        str(tmp_path),
        "--quiet",
    )
    assert run(script, *arguments) == 0
    printed = capsys.readouterr()
    document = json.loads((tmp_path / name / "smoke-digits.json").read_text())
    page = (tmp_path / name / "smoke-digits.md").read_text()
    assert printed.err == ""
    assert document["title"] in printed.out
    assert (tmp_path / name / "smoke-digits.png").read_bytes().startswith(b"\x89PNG")
    assert "smoke-digits.png" in page
    assert "Each cell is one look" in " ".join(page.split())
    assert f"python experiments/{script}.py --preset smoke --data digits\n" in page
    assert str(tmp_path) not in page
    assert all(seconds > 0 for seconds in document["wall_seconds"].values())
    assert len(document["wall_seconds"]) > 0
    for check in document["checks"]:
        assert check["expected"] in page
    for cell in document["cells"]:
        for theorem, direct in zip(cell["theorem_4_2"], cell["direct"], strict=True):
            assert 0 <= theorem <= direct <= cell["ceiling"]
        assert np.shape(cell["accuracies"]) == (3, len(cell["direct"]))


@pytest.mark.slow
def test_smoke_writes_nothing_by_itself(store, capsys):
    assert (
        run("table7_hessian_noise", "--preset", "smoke", "--data", "digits", "--store", str(store), "--quiet")
        == 0
    )
    assert "written" not in capsys.readouterr().out


def test_wrong_arguments_are_named(capsys, tmp_path):
    assert run("table3_scores", "--data", str(tmp_path / "nothing.npz"), "--store", str(tmp_path)) == 2
    assert "nothing.npz" in capsys.readouterr().err
    for wrong, message in {
        ("--reference", "luck"): "override must be one of",
        ("--seeds",): "seeds must be one or more",
        ("--seeds", "1", "1"): "seeds must be one or more different numbers, got [1, 1]",
    }.items():
        assert run("table3_scores", *wrong, "--dry-run") == 2
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        run("table3_scores", "--preset", "other")
    assert stop.value.code == 2


def test_a_dry_run_knows_the_cost_without_data(capsys):
    assert run("table6_model_clipping", "--preset", "paper", "--data", "cifar100", "--dry-run") == 0
    printed = capsys.readouterr().out
    # 3 seeds x 2 splits of 20 sign vectors, each calibrated 50 times, and 100 audited runs.
    assert printed.count("| clipping, ") == 6
    assert printed.count("| 1,100 | 20 | 133,600 |") == 6  # 400 epochs of 334 batches of 42,750 images
    assert "TFLOP" in printed


def test_the_papers_sizes_are_those_of_its_tables():
    presets, paper = (importlib.import_module(name) for name in ("cifar100_presets", "cifar100_paper"))
    table5 = importlib.import_module("table5_batch_size")
    printed = {(look.num_groups, look.num_guesses) for look in paper.looks("5")}
    ours = {
        (paper.num_groups(size), r)
        for size in presets.PAPER.group_sizes
        for records in table5.PAPER_RECORDS
        if (r := presets.PAPER.guesses(records, size)) is not None
    }
    assert ours == printed  # N/A where the paper has it
    small = {
        (presets.CPU.num_candidates // size, r)
        for size in presets.CPU.group_sizes
        for records in table5.PAPER_RECORDS
        if (r := presets.CPU.guesses(records, size)) is not None
    }
    shared = (450, 45, 9)  # both have these numbers of groups
    assert {pair for pair in printed if pair[0] in shared} == {pair for pair in small if pair[0] in shared}


@pytest.mark.slow
def test_every_run_of_a_certified_audit_has_noise_and_scores_of_its_own(lab):
    jobs = importlib.import_module("cifar100_jobs")
    report = lab.audit(jobs.joint_key(lab.preset, "clipping", "uniform", 0))
    certified = [result for result in report.methods if result.family.startswith("clipping")]
    assert len(certified) == 2 * len(lab.preset.clipping)  # after a step, and at the end
    for result in certified:
        runs = result.calibration.num_runs + result.audited.num_runs
        assert runs == 2 * 20 + lab.preset.certified_audit_runs
        assert len(np.unique(result.noise_keys, axis=0)) == runs
        scores = np.concatenate(
            [part.scores.reshape(part.num_runs, -1) for part in (result.calibration, result.audited)]
        )
        assert len(np.unique(scores, axis=0)) == runs
    # So many runs cannot all have a sign vector of their own: models are shared, draws are not.
    signs = np.concatenate([result.calibration.signs, result.audited.signs])
    assert len(np.unique(signs, axis=0)) == 20 < runs
    # The controls add no noise: the same sign vector gives the same scores, and all are recognised.
    none = next(result for result in report.methods if result.name == "none")
    scores = np.concatenate(
        [part.scores.reshape(part.num_runs, -1) for part in (none.calibration, none.audited)]
    )
    assert len(np.unique(scores, axis=0)) == 20
    assert (none.analysis.overlaps == 6).all()


@pytest.mark.slow
def test_noise_is_added_up_to_the_amount_of_each_look(lab):
    jobs = importlib.import_module("cifar100_jobs")
    key = jobs.heuristic_key(lab.preset, "uniform", 0)
    params = jax.eval_shape(lab.job(key).model.init_fn, jax.random.key(0))
    size = sum(leaf.size for leaf in jax.tree.leaves(params))
    first, last = lab.preset.hessian_sigmas
    moved = [result.moved for result in lab.audit(key).methods if result.family == "hessian"]
    # The step is the same, and independent noise adds up in squares.
    expected = math.sqrt(moved[0] ** 2 + (last**2 - first**2) * size)
    assert abs(moved[1] / expected - 1) < 0.1


@pytest.mark.slow
def test_the_loss_is_read_from_the_logit_score(lab):
    cells, jobs = importlib.import_module("cifar100_cells"), importlib.import_module("cifar100_jobs")
    key = jobs.heuristic_key(lab.preset, "uniform", 0)
    job = lab.job(key)
    report = run_audit(
        job.data,
        job.model,
        {"ascent": job.methods["ascent"]},
        job.design,
        training=job.preset.training,
        score="cross-entropy",
        store=lab.store,
    )
    (other,) = report.methods
    own = cells.looks(lab.audit(key), "ascent")[-1]
    transformed = cells.scored_as(own.audited, "loss")
    np.testing.assert_allclose(transformed.scores, other.audited.scores, rtol=1e-4, atol=1e-6)
    cell = cells.measure([own], {}, score="loss", num_guesses=8)
    again = analyse(other.analysis.design.replace(num_guesses=8), other.calibration, other.audited)
    assert cell.direct.values == (again.direct.epsilon,)


@pytest.mark.slow
def test_pairwise_counts_are_those_of_the_guesses(lab):
    jobs, script = importlib.import_module("cifar100_jobs"), importlib.import_module("fig1b_pairwise")
    report = lab.audit(jobs.joint_key(lab.preset, "pairwise", "uniform", 0))
    for result in report.methods:
        found = script.pairwise(result)
        # With two groups a run is right about both of them or about none.
        right = result.analysis.overlaps == 2
        first = result.audited.signs[:, 0] == 1
        assert found.true_positives == right[first].sum()
        assert found.false_negatives == (~right[first]).sum()
        assert found.true_negatives == right[~first].sum()
        assert found.false_positives == (~right[~first]).sum()


@pytest.mark.slow
def test_constants_of_rewinding_are_those_of_the_starting_point(lab):
    """Against central differences and a loop over images, on the retained images alone."""
    jobs = importlib.import_module("cifar100_jobs")
    job = lab.job(jobs.joint_key(lab.preset, "rewind", "uniform", 0))
    loss_fn = cross_entropy_loss(job.model.logits_fn)
    setup = set_up(job.data, job.model, job.design, 0)
    x0, retain = setup.shared.initial_params, job.data.retain
    norms = [
        optax.tree.norm(jax.grad(loss_fn)(x0, jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], retain)))
        for i in range(job.data.num_retain)
    ]
    assert job.preset.rewind.gradient_bound == pytest.approx(float(max(norms)), rel=0.05)
    assert 0 < job.preset.rewind.smoothness < 100
    assert lab.preset.rewind.smoothness != job.preset.rewind.smoothness


def test_wall_time_is_that_of_the_work(lab, tmp_path):
    """An audit from the store keeps the time of the first; a reader wants to know what it cost."""
    jobs = importlib.import_module("cifar100_jobs")
    key = jobs.joint_key(lab.preset, "pairwise", "uniform", 0)
    first, again = (jobs.Lab(lab.preset, "digits", tmp_path, SilentReporter()) for _ in range(2))
    for one in (first, again):
        one.audit(key)
    assert first.seconds == again.seconds
    assert first.seconds[key] > 0


@pytest.mark.parametrize("name", [name for name in SCRIPTS if (RESULTS / name / "cpu.json").exists()])
def test_the_kept_results_are_whole(name):
    kept = json.loads((RESULTS / name / "cpu.json").read_text())
    page = (RESULTS / name / "cpu.md").read_text()
    for check in kept["checks"]:
        assert check["expected"] in page
    for cell in kept["cells"]:
        assert 1 <= len(cell["direct"]) <= len(kept["preset"]["seeds"])
        assert all(0 <= value <= cell["ceiling"] for value in cell["direct"])
