"""``jaxaudit run``: a whole audit from the command line, and no training where the input is wrong."""

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from jaxaudit.checkpoint import save_params
from jaxaudit.cli import main, run
from jaxaudit.keys import stream_key
from jaxaudit.models import mlp
from jaxaudit.report.verify import verify

# One hidden unit more would not matter; what matters is that the network learns its training records by heart.
LEAKY = (
    *("run", "--num-groups", "60", "--num-holdout", "1700", "--num-calibration-runs", "12"),
    *("--num-audit-runs", "4", "--hidden", "64", "--training.epochs", "60", "--seed", "1"),
    *("--unlearning.finetune.epochs", "1", "--unlearning.ascent.epochs", "1"),
)
TINY = (*LEAKY, "--num-groups", "10", "--training.epochs", "1", "--num-calibration-runs", "4")


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    """One audit of all methods: exit code, stdout, stderr, folder."""
    folder = tmp_path_factory.mktemp("run") / "report"
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*LEAKY, "--out", str(folder), "--claim-epsilon", "0.2"])
    return code, out.getvalue(), err.getvalue(), folder


def test_one_falsified_method_is_enough(audit):
    code, _, _, folder = audit
    methods = json.loads((folder / "report.json").read_text())["methods"]
    verdicts = {method["name"]: method["statistics"]["verdict"]["falsified"] for method in methods}
    assert list(verdicts) == ["none", "retain-finetune", "ascent", "retrain"]
    assert verdicts["none"]
    assert not verdicts["retrain"]
    assert code == 3


def test_table_verdicts_notes_and_what_to_do_next(audit):
    _, out, _, folder = audit
    assert "exact retraining" in out
    assert "every score is the same in all runs" in out
    assert "no unlearning: falsified at level 0.05: the claim (epsilon 0.2, delta 0)" in out
    assert f"check it: jaxaudit verify {folder}" in out


def test_cost_progress_and_time_on_stderr(audit):
    err = audit[2]
    assert err.startswith(
        "12 calibration and 4 audited runs of MLP 64-64-10, ReLU on digits: 120 updates of training"
    )
    assert "train: done in" in err
    assert err.rstrip().endswith("s in total")


def test_report_folder_is_sound_and_holds_the_spec(audit):
    folder = audit[3]
    assert verify(folder).ok
    spec = json.loads((folder / "report.json").read_text())["spec"]["run"]
    assert spec["training"]["epochs"] == 60
    assert spec["claim_epsilon"] == 0.2
    assert spec["data"] == "digits"


def test_existing_report_is_kept(audit, cli, monkeypatch):
    monkeypatch.setattr(
        run, "run_suites", lambda *arguments: pytest.fail("trained before checking the folder")
    )
    outcome = cli(*LEAKY, "--out", audit[3])
    assert outcome.code == 2
    assert "exists and is not empty" in outcome.err
    assert outcome.out == ""


def test_json_is_one_object_and_quiet_is_quiet(cli):
    options = ("--methods", "none", "retrain", "--claim-epsilon", "50", "--claim-delta", "1e-6")
    outcome = cli(*TINY, *options, "--json", "--quiet")
    assert outcome.code == 0
    assert outcome.err == ""
    document = outcome.document
    assert [method["name"] for method in document["methods"]] == ["none", "retrain"]
    assert document["claim"] == {"epsilon": 50.0, "delta": 1e-6}
    assert document["folder"] == "jaxaudit-report"
    assert verify("jaxaudit-report").ok
    again = cli(*TINY, "--methods", "none", "--overwrite", "--quiet", "--seed", "2")
    assert again.code == 0
    assert len(json.loads(Path("jaxaudit-report/report.json").read_text())["methods"]) == 1


def test_own_records_request_and_start(cli, tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"rec{i},{'cat' if i % 2 else 'dog'},{a:.3f},{b:.3f}"
        for i, (a, b) in enumerate(rng.normal(size=(30, 2)))
    ]
    (tmp_path / "pets.csv").write_text("\n".join(["id,label,height,weight", *rows]))
    (tmp_path / "request.txt").write_text("rec1, rec2  # one household\nrec7\nrec9,rec12\n")
    save_params(tmp_path / "x0", mlp((2,), 2, (4,)).init_fn(stream_key(9, "init")))
    outcome = cli(
        *(
            "run",
            "--data",
            "pets.csv",
            "--forget-ids",
            "@request.txt",
            "--initial-params",
            "x0",
            "--hidden",
            "4",
        ),
        *(
            "--num-calibration-runs",
            "6",
            "--num-audit-runs",
            "2",
            "--training.epochs",
            "1",
            "--methods",
            "none",
        ),
        *("--json", "--quiet", "--training.batch-size", "8", "--score", "cross-entropy", "--method", "both"),
    )
    assert outcome.code == 0
    document = outcome.document
    assert document["data"]["num_groups"] == 3
    assert document["spec"]["initial_params"] == "given"
    assert document["design"]["method"] == "both"
    records = {
        tuple(leak["record_ids"]) for leak in document["methods"][0]["statistics"]["leakage"]["records"]
    }
    assert records == {("rec1", "rec2"), ("rec7",), ("rec9", "rec12")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--methods", "forget"), "methods must be all, or some of none, retain-finetune"),
        (("--num-guesses", "12"), "num_guesses must be an integer between 2 and 10, got 12"),
        (("--num-guesses", "5"), "num_guesses must be even"),
        (("--num-holdout", "1787"), "num_holdout must leave a record to retain"),
        (("--training.batch-size", "0"), "batch_size must be an integer of at least 1, got 0"),
        (("--training.epochs", "-1"), "epochs must be an integer of at least 0, got -1"),
        (("--data", "nowhere.npz"), "no such file: nowhere.npz"),
        (("--data", "digit"), "data must be 'digits' or a .npz or .csv file, got 'digit'"),
        (("--forget-ids", "12,40-"), "range '40-' must have two ends"),
        (("--initial-params", "nowhere"), "no Orbax checkpoint at"),
        (("--claim-epsilon", "nan"), "claim_epsilon must be a finite number, got nan"),
        (("--claim-delta", "0.1"), "claim_delta needs claim_epsilon"),
        (("--significance", "1.2"), "significance must be in (0, 1), got 1.2"),
        (("--num-audit-runs", "0"), "num_audit_runs must be an integer of at least 1, got 0"),
        (("--seed", "-1"), "seed must be an integer of at least 0, got -1"),
        (("--out", "/proc/nowhere/report"), "report folder /proc/nowhere/report cannot be written"),
        (("--method", "odds"), "invalid choice"),
    ],
)
def test_bad_input_is_found_before_training(cli, monkeypatch, options, message):
    monkeypatch.setattr("jaxaudit.spec.run_audit", lambda *arguments, **others: pytest.fail("trained"))
    outcome = cli(*TINY, *options)
    assert outcome.code == 2
    assert message in " ".join(outcome.err.replace("│", " ").split())
    assert outcome.out == ""
