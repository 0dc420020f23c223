"""Settings of an audit of edges: everything that is decided before a run is made."""

from dataclasses import dataclass
from typing import Literal, get_args

from jaxaudit.checks import check_choice, check_integer
from jaxaudit.design import AuditDesign, PredictorName
from jaxaudit.errors import InputError
from jaxaudit.study.settings import StudySpec

BEFORE, RETRAINED = "before", "retrained"
STRONG = " (strong)"
"""What the name of a method ends with at the rate that forgets as much as retraining."""
Rule = Literal["utility", "strong"]
SCORE_DEFINITION = "log-likelihood of the true answer to each question, in nats"


@dataclass(frozen=True)
class EdgeAuditSpec:
    """What is decided before a run is made.

    Parameters
    ----------
    study
        Fine-tuning, unlearning, rates that are tried, and the rule that chooses among them. It has one seed, the
        audit's, and no dropout, so that retraining does not depend on the run; ``chunk`` runs advance together.
    methods
        Unlearning methods of the reading. ``None``: all.
    rules
        How the rate of a method is chosen. ``utility``: as in `jaxaudit.study.choose_rates`, so that retained answers
        stay known, which may leave most of the others. ``strong``: the smallest rate after which no more of the
        forgotten answers is known than after exact retraining, whatever else is lost.
    num_calibration_runs, num_audit_runs
        The paper's Gamma and L.
    num_measured
        Of the audited runs, how many are also asked what they still say.
    predictors
        Attacks that look at the scores; with ``joint`` among them, sign vectors are drawn for its calibration.
    significance
        Of all looks at a method together.

    Raises
    ------
    InputError
        If a value is out of range.
    """

    study: StudySpec
    methods: tuple[str, ...] | None = None
    rules: tuple[Rule, ...] = ("utility",)
    num_calibration_runs: int = 50
    num_audit_runs: int = 10
    num_measured: int = 4
    predictors: tuple[PredictorName, ...] = ("batchwise",)
    significance: float = 0.05

    def __post_init__(self) -> None:
        if len(self.study.seeds) != 1:
            raise InputError(f"seeds must be one, that of the audit, got {self.study.seeds}")
        lora = self.study.fine_tuning_lora
        if lora is not None and lora.dropout > 0:
            raise InputError(f"fine_tuning_lora must have dropout 0 in an audit of edges, got {lora.dropout}")
        if not self.chosen_methods:
            raise InputError("methods must hold at least one method, got none")
        for method in self.chosen_methods:
            check_choice("methods", method, self.study.methods)
        check_integer("num_measured", self.num_measured, low=1, high=self.num_audit_runs)
        for rule in self.rules:
            check_choice("rules", rule, get_args(Rule))
        for name, values in (("methods", self.chosen_methods), ("rules", self.rules)):
            if len(set(values)) < len(values):
                raise InputError(f"{name} must be different, got {values}")
        if not self.predictors or len(set(self.predictors)) < len(self.predictors):
            raise InputError(f"predictors must be different and at least one, got {self.predictors}")

    @property
    def chosen_methods(self) -> tuple[str, ...]:
        """Unlearning methods."""
        return self.study.methods if self.methods is None else self.methods

    @property
    def variants(self) -> tuple[str, ...]:
        """Methods, each by every rule."""
        endings = [STRONG if rule == "strong" else "" for rule in self.rules]
        return tuple(method + ending for method in self.chosen_methods for ending in endings)

    @property
    def rows(self) -> tuple[str, ...]:
        """What is audited: no unlearning, exact retraining, and every variant of a method."""
        return (BEFORE, RETRAINED, *self.variants)

    @property
    def num_runs(self) -> int:
        """Calibration and audited runs."""
        return self.num_calibration_runs + self.num_audit_runs

    def design(self, num_groups: int) -> AuditDesign:
        """The design by which sign vectors are drawn."""
        return AuditDesign(
            num_groups=num_groups,
            num_calibration_runs=self.num_calibration_runs,
            num_audit_runs=self.num_audit_runs,
            significance=self.significance,
            predictor="joint" if "joint" in self.predictors else "batchwise",
        )


def method_of(row: str) -> str:
    """The method of a variant.

    Examples
    --------
    >>> method_of("npo (strong)"), method_of("npo")
    ('npo', 'npo')
    """
    return row.removesuffix(STRONG)
