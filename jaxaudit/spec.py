"""Whole audits and designs as frozen dataclasses: what the command line and experiments start from."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import jax

from jaxaudit.analysis import Claim
from jaxaudit.audit import run_audit
from jaxaudit.checkpoint import load_params
from jaxaudit.checks import check_choice, check_integer
from jaxaudit.data import AuditData, load
from jaxaudit.design import AuditDesign, Method
from jaxaudit.designfile import DesignFile
from jaxaudit.external import UNSTATED_SCORE
from jaxaudit.keys import stream_key
from jaxaudit.models import Model, mlp
from jaxaudit.progress import Reporter, SilentReporter
from jaxaudit.report import AuditReport
from jaxaudit.rules import InlineRules, Rules, make_claim
from jaxaudit.runs import DEFAULT_MEMORY_BUDGET
from jaxaudit.signs import draw_order, draw_run_signs, member_indices
from jaxaudit.train import Params, SgdSpec, cross_entropy_loss
from jaxaudit.unlearn import Problem, Recipe, UnlearningSpec, as_stages, build_methods, select_methods

ScoreName = Literal["logit", "cross-entropy"]
"""Scores of a classifier; those of language models need tokens."""


@dataclass(frozen=True)
class RunSpec:
    """Train many models on random halves of the candidate groups, unlearn, attack, and bound epsilon.

    The defaults audit four unlearning methods on scikit-learn's digits.

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
    methods: tuple[str, ...] = ("all",)
    """Unlearning methods to audit; see "jaxaudit list"."""
    hidden: tuple[int, ...] = (128, 128)
    """Width of each hidden layer of the ReLU network."""
    score: ScoreName = "logit"
    """Membership score; see "jaxaudit list"."""
    memory_budget: int = DEFAULT_MEMORY_BUDGET
    """Bytes that one program over many runs may use; more runs at once are faster."""
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


def run_spec(spec: RunSpec, reporter: Reporter | None = None) -> AuditReport:
    """Carry out an audit.

    Everything about the spec is checked before the first model is trained.

    Parameters
    ----------
    spec
        What to do.
    reporter
        Where progress goes; default: nowhere.

    Returns
    -------
    An `AuditReport` whose ``spec["run"]`` is the spec.

    Raises
    ------
    InputError
        If a setting is out of range, a file cannot be read, or the settings do not fit each other.
    """
    reporter = reporter or SilentReporter()
    job = _prepare(spec)
    reporter.say(_cost(job, spec.training))
    report = run_audit(
        job.data,
        job.model,
        job.methods,
        job.design,
        training=spec.training,
        seed=spec.seed,
        claim=job.claim,
        score=spec.score,
        memory_budget=spec.memory_budget,
        initial_params=job.initial_params,
        reporter=reporter,
    )
    return replace(report, spec={**report.spec, "run": asdict(spec)})


class _Job(NamedTuple):
    """A spec with its names and paths resolved."""

    data: AuditData
    model: Model
    methods: dict[str, Recipe]
    design: AuditDesign
    claim: Claim | None
    initial_params: Params | None


def _prepare(spec: RunSpec) -> _Job:
    entries = select_methods(spec.methods)
    claim = make_claim(spec.claim_epsilon, spec.claim_delta)
    check_choice("score", spec.score, get_args(ScoreName))
    data = load(
        spec.data,
        seed=spec.seed,
        forget_ids=spec.forget_ids,
        num_groups=spec.num_groups,
        group_size=spec.group_size,
        num_holdout=spec.num_holdout,
    )
    model = mlp(data.retain.x.shape[1:], data.num_classes, spec.hidden)
    num_forget = data.num_groups // 2 * data.group_size
    problem = Problem(
        loss_fn=cross_entropy_loss(model.logits_fn),
        logits_fn=model.logits_fn,
        num_classes=data.num_classes,
        training=spec.training,
        spec=spec.unlearning,
        num_retain=data.num_retain,
        num_forget=num_forget,
    )
    return _Job(
        data=data,
        model=model,
        methods=build_methods(entries, problem),
        design=_design(spec, data.num_groups),
        claim=claim,
        initial_params=_initial_params(spec, model),
    )


def _initial_params(spec: RunSpec, model: Model) -> Params | None:
    if spec.initial_params is None:
        return None
    return load_params(spec.initial_params, like=jax.eval_shape(model.init_fn, stream_key(spec.seed, "init")))


def _cost(job: _Job, training: SgdSpec) -> str:
    """What the audit will do, in one sentence."""
    num_members = job.data.num_retain + job.data.num_groups // 2 * job.data.group_size
    updates = {
        name: sum(stage.num_updates for stage in as_stages(recipe.method).stages)
        for name, recipe in job.methods.items()
    }
    unlearning = ", ".join(f"{name} {count:,}" for name, count in updates.items())
    return (
        f"{job.design.num_calibration_runs} calibration and {job.design.num_audit_runs} audited runs of "
        f"{job.model.description} on {job.data.name}: {training.num_updates(num_members):,} updates of "
        f"training each; then of unlearning: {unlearning}"
    )


@dataclass(frozen=True)
class DesignSpec:
    """The design of an audit whose models are trained elsewhere.

    Examples
    --------
    >>> DesignSpec(num_groups=6).num_audit_runs
    10
    """

    num_groups: int
    """Candidate groups, the paper's m."""
    num_retain: int | None = None
    """Retain records at the head of the pool. If given, the file also holds each run's member indices."""
    group_size: int = 1
    """Records per group."""
    score_definition: str = UNSTATED_SCORE
    """What the score will be, in words; higher must mean more likely a member."""
    num_calibration_runs: int = AuditDesign.num_calibration_runs
    """Runs that the attack will be fitted on, the paper's Gamma."""
    num_audit_runs: int = AuditDesign.num_audit_runs
    """Independent runs that will count as evidence, the paper's L."""
    method: Method = AuditDesign.method
    """Bound that decides the verdict; "both" gives each half of the significance."""
    rules: InlineRules = field(default_factory=Rules)
    """Everything else that is declared beforehand."""
    seed: int = 0
    """Seed of the sign vectors and of the order: those that "jaxaudit run" would draw."""


def make_design(spec: DesignSpec) -> DesignFile:
    """Draw the sign vectors (and member indices) of a design, for `jaxaudit.designfile.write_design`.

    Examples
    --------
    >>> design_file = make_design(DesignSpec(num_groups=6, num_retain=10, num_calibration_runs=4))
    >>> design_file.signs.shape, design_file.member_indices.shape, len(design_file.order)
    ((10, 6), (10, 13), 16)
    """
    design = _design(spec, spec.num_groups)
    calibration_signs, signs = draw_run_signs(design, spec.seed)
    tables: dict[str, Any] = {}
    if spec.num_retain is not None:
        check_integer("num_retain", spec.num_retain, 1)
        check_integer("group_size", spec.group_size, 1)
        order = draw_order(spec.seed, spec.num_retain + spec.num_groups * spec.group_size)
        pool = (spec.num_retain, spec.group_size, order)
        tables = {
            "order": order,
            "calibration_member_indices": member_indices(calibration_signs, *pool),
            "member_indices": member_indices(signs, *pool),
        }
    return DesignFile(
        design=design,
        calibration_signs=calibration_signs,
        signs=signs,
        score_definition=spec.score_definition,
        seed=spec.seed,
        num_retain=spec.num_retain,
        group_size=spec.group_size,
        **tables,
    )


def _design(spec: RunSpec | DesignSpec, num_groups: int) -> AuditDesign:
    return spec.rules.design(
        num_groups,
        num_calibration_runs=spec.num_calibration_runs,
        num_audit_runs=spec.num_audit_runs,
        method=spec.method,
    )
