"""Whole audits as frozen dataclasses: what the command line and experiments start from."""

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, NamedTuple, get_args

import jax

from jaxaudit.analysis import Claim
from jaxaudit.audit import run_audit
from jaxaudit.checkpoint import load_params
from jaxaudit.checks import check_choice, check_integer
from jaxaudit.data import AuditData, load
from jaxaudit.design import AuditDesign, Method
from jaxaudit.errors import InputError
from jaxaudit.keys import stream_key
from jaxaudit.models import Model, mlp, tinynet
from jaxaudit.models.base import ComputeDtype
from jaxaudit.pipeline import fastest_model
from jaxaudit.progress import Reporter, SilentReporter
from jaxaudit.report import AuditReport
from jaxaudit.report.comparison import Comparison
from jaxaudit.rules import InlineRules, Rules, make_claim
from jaxaudit.runs import RunOptions
from jaxaudit.signs import num_sign_vectors
from jaxaudit.suites import Setting, convex_setting, network_setting
from jaxaudit.train import Params, SgdSpec
from jaxaudit.unlearn import (
    Recipe,
    Suite,
    UnlearningSpec,
    as_stages,
    build_methods,
    by_suite,
    select_methods,
)

ScoreName = Literal["logit", "cross-entropy"]
"""Scores of a classifier; those of language models need tokens."""


DEFAULT_METHODS = ("none", "retain-finetune", "ascent", "retrain")


@dataclass(frozen=True)
class CertifiedDesign:
    """Sizes of the audits of certified methods: so few groups that the whole sign vector can be guessed at once.

    Their noise hides single groups; only all records together say something (the paper, Appendix F.4).
    """

    num_groups: int = 6
    """Candidate groups, the paper's m, even: those of a network share all candidate records among them."""
    convex_group_size: int = 2
    """Records per group of a convex problem, where the noise grows with the number of records that are forgotten."""
    num_calibration_runs: int = 200
    """Runs that the attack is fitted on, the same number for every sign vector."""
    num_audit_runs: int = 100
    """Independent runs that count as evidence, the paper's L."""


@dataclass(frozen=True)
class RunSpec:
    """Train many models on random halves of the candidate groups, unlearn, attack, and bound epsilon.

    The defaults audit four unlearning methods on scikit-learn's digits. Certified methods are audited apart, at a
    design of their own.

    Examples
    --------
    >>> RunSpec(methods=("retrain",)).training.epochs
    100
    """

    data: str = "digits"
    """"digits", or a .npz or .csv file with your own records."""
    forget_ids: str | None = None
    """Candidate groups by record id: 12,40-45 (one record each), or @FILE with one group per line."""
    num_groups: int | None = None
    """Candidate groups to draw, the paper's m. None: a third of the records, at most 500."""
    group_size: int = 1
    """Records per drawn group."""
    num_holdout: int | None = None
    """Records that no run trains on. None: 300 of the digits, a fifth of the rest of a file."""
    methods: tuple[str, ...] = DEFAULT_METHODS
    """Unlearning methods to audit, or all; see "jaxaudit list"."""
    model: Literal["mlp", "tinynet"] = "mlp"
    """Network: dense layers, or the paper's small convolutional network for images."""
    hidden: tuple[int, ...] = (128, 128)
    """Width of each hidden layer of an mlp."""
    widths: tuple[int, ...] = (16, 32)
    """Channels of each block of a tinynet (the paper: 64 128)."""
    image_shape: tuple[int, int, int] = (8, 8, 1)
    """Height, width and channels of the images of a tinynet; the records' features may be flat."""
    score: ScoreName = "logit"
    """Membership score; see "jaxaudit list"."""
    compute_dtype: ComputeDtype = "float32"
    """Of the network's activations and products; parameters stay float32."""
    initial_params: str | None = None
    """Folder of an Orbax checkpoint to start training from, x0. None: drawn."""
    num_calibration_runs: int = AuditDesign.num_calibration_runs
    """Runs that the attack is fitted on, the paper's Gamma."""
    num_audit_runs: int = AuditDesign.num_audit_runs
    """Independent runs that count as evidence, the paper's L."""
    method: Method = AuditDesign.method
    """Bound that decides the verdict; "both" gives each half of the significance."""
    rules: InlineRules = field(default_factory=Rules)
    """Everything else that is declared beforehand."""
    claim_epsilon: float | None = None
    """Epsilon of a claim to test."""
    claim_delta: float = 0.0
    """Delta of the claim."""
    seed: int = 0
    """Seed of the data split, x0, order, sign vectors and noise."""
    training: SgdSpec = field(default_factory=lambda: SgdSpec(epochs=100, learning_rate=0.3))
    """Base training, and exact retraining."""
    unlearning: UnlearningSpec = field(default_factory=UnlearningSpec)
    """Settings of the unlearning methods."""
    certified: CertifiedDesign = field(default_factory=CertifiedDesign)
    """Design of the audits of certified methods."""
    store: str | None = None
    """Folder for trained models and for progress: an interrupted audit goes on there, a later one reuses the models."""
    engine: RunOptions = field(default_factory=RunOptions)
    """How the runs are carried out."""


def run_spec(spec: RunSpec, reporter: Reporter | None = None) -> AuditReport:
    """Carry out one audit; as `run_suites`, for methods that fit one design.

    Raises
    ------
    InputError
        Also if the methods need several audits.
    """
    suites = by_suite(select_methods(spec.methods))
    if len(suites) > 1:
        raise InputError(f"methods must fit one design, got some for {' and '.join(suites)}; use run_suites")
    (report,) = run_suites(spec, reporter).reports.values()
    return report


def run_suites(spec: RunSpec, reporter: Reporter | None = None) -> Comparison:
    """Carry out an audit, or several if the methods need different designs.

    Everything about the spec is checked before the first model is trained.

    Parameters
    ----------
    spec
        What to do.
    reporter
        Where progress goes; default: nowhere.

    Returns
    -------
    An `AuditReport` for each suite of methods, by its name; the spec is ``report.spec["run"]`` of each.

    Raises
    ------
    InputError
        If a setting is out of range, a file cannot be read, or the settings do not fit each other.
    """
    reporter = reporter or SilentReporter()
    jobs = _prepare(spec, reporter)
    reports: dict[str, AuditReport] = {}
    for suite, job in jobs.items():
        reporter.say(f"{suite}: {_cost(job)}" if len(jobs) > 1 else _cost(job))
        report = run_audit(
            job.setting.data,
            job.setting.model,
            job.methods,
            job.setting.design,
            training=job.setting.training,
            seed=spec.seed,
            claim=job.claim,
            score=spec.score,
            options=spec.engine,
            initial_params=job.initial_params,
            store=spec.store,
            reporter=reporter,
        )
        reports[suite] = replace(report, spec={**report.spec, "run": asdict(spec)})
    return Comparison(reports)


class _Job(NamedTuple):
    """One audit with its names and paths resolved."""

    setting: Setting
    methods: dict[str, Recipe]
    claim: Claim | None
    initial_params: Params | None


def _prepare(spec: RunSpec, reporter: Reporter) -> dict[Suite, _Job]:
    entries = select_methods(spec.methods)
    claim = make_claim(spec.claim_epsilon, spec.claim_delta)
    check_choice("score", spec.score, get_args(ScoreName))
    suites = by_suite(entries)
    settings = settings_by_suite(spec, tuple(suites), reporter)
    return {
        suite: _Job(
            settings[suite],
            build_methods(members, settings[suite].problem),
            claim,
            _initial_params(spec, settings[suite].model),
        )
        for suite, members in suites.items()
    }


def settings_by_suite(
    spec: RunSpec, suites: tuple[Suite, ...], reporter: Reporter | None = None
) -> dict[Suite, Setting]:
    """Data, model, design and training of each audit of a spec.

    With a reporter the fastest implementation of the model is looked for; without one the first is taken.

    Examples
    --------
    >>> settings_by_suite(RunSpec(), ("certified",))["certified"].data.group_size
    83
    """
    return {suite: _setting(spec, suite, reporter) for suite in suites}


def _setting(spec: RunSpec, suite: Suite, reporter: Reporter | None) -> Setting:
    data = _load(spec, spec.num_groups, spec.group_size)
    if suite == "heuristic":
        design = spec.rules.design(
            data.num_groups,
            num_calibration_runs=spec.num_calibration_runs,
            num_audit_runs=spec.num_audit_runs,
            method=spec.method,
        )
    else:
        data = _with_few_groups(spec, data, suite)
        design = replace(spec.rules, predictor="joint", num_guesses=None).design(
            data.num_groups,
            num_calibration_runs=spec.certified.num_calibration_runs,
            num_audit_runs=spec.certified.num_audit_runs,
            method=spec.method,
        )
    if suite == "convex":
        return convex_setting(data, design, spec.unlearning)
    return network_setting(
        data, design, _network(spec, data, design, reporter), spec.training, spec.unlearning
    )


def _network(spec: RunSpec, data: AuditData, design: AuditDesign, reporter: Reporter | None) -> Model:
    shape = data.retain.x.shape[1:]
    if spec.model == "mlp":
        return mlp(shape, data.num_classes, spec.hidden, compute_dtype=spec.compute_dtype)
    if math.prod(shape) != math.prod(spec.image_shape):
        raise InputError(
            f"image_shape must hold the {math.prod(shape)} features of a record, got {spec.image_shape}"
        )
    model = tinynet(spec.image_shape, data.num_classes, spec.widths, compute_dtype=spec.compute_dtype)
    if reporter is None:  # nothing will be trained
        return model
    num_runs = design.num_calibration_runs + design.num_audit_runs
    return fastest_model(
        model, data, spec.training, num_runs, options=spec.engine, store=spec.store, reporter=reporter
    )


def _with_few_groups(spec: RunSpec, data: AuditData, suite: Suite) -> AuditData:
    """The candidate records (some, if the problem is convex) in few groups; requested groups stay as they are."""
    if spec.forget_ids is not None:
        _check_enumerable("forget_ids: the number of groups", data.num_groups, spec.certified)
        return data
    num_groups = check_integer("certified.num_groups", spec.certified.num_groups, 2)
    _check_enumerable("certified.num_groups", num_groups, spec.certified)
    num_candidates = data.num_groups * data.group_size
    if num_groups > num_candidates:
        raise InputError(
            f"certified.num_groups must be at most the number of candidate records, num_groups * group_size = "
            f"{num_candidates}, got {num_groups}"
        )
    size = spec.certified.convex_group_size if suite == "convex" else num_candidates // num_groups
    return _load(spec, num_groups, size)


def _check_enumerable(name: str, num_groups: int, sizes: CertifiedDesign) -> None:
    """Raise unless there are two calibration runs for every sign vector, which is what certified methods need."""
    if num_groups % 2:
        raise InputError(f"{name} must be even for certified methods, got {num_groups}")
    needed = 2 * num_sign_vectors(num_groups)
    if needed > sizes.num_calibration_runs:
        raise InputError(
            f"{name} must be so small for certified methods that every sign vector gets two of the "
            f"certified.num_calibration_runs = {sizes.num_calibration_runs}, got {num_groups}, which need {needed}"
        )


def _load(spec: RunSpec, num_groups: int | None, group_size: int) -> AuditData:
    return load(
        spec.data,
        seed=spec.seed,
        forget_ids=spec.forget_ids,
        num_groups=num_groups,
        group_size=group_size,
        num_holdout=spec.num_holdout,
    )


def _initial_params(spec: RunSpec, model: Model) -> Params | None:
    if spec.initial_params is None:
        return None
    return load_params(spec.initial_params, like=jax.eval_shape(model.init_fn, stream_key(spec.seed, "init")))


def _cost(job: _Job) -> str:
    """What the audit will do, in one sentence."""
    setting, design = job.setting, job.setting.design
    updates = {
        name: sum(stage.num_updates for stage in as_stages(recipe.method).stages)
        for name, recipe in job.methods.items()
    }
    unlearning = ", ".join(f"{name} {count:,}" for name, count in updates.items())
    return (
        f"{design.num_calibration_runs} calibration and {design.num_audit_runs} audited runs of "
        f"{setting.model.description} on {setting.data.name}: {setting.num_training_updates:,} updates of "
        f"training each; then of unlearning: {unlearning}"
    )
