"""What a study does: fine-tuning, unlearning, the rates that are tried and the rule that chooses among them, seeds."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from jaxaudit.checks import check_choice, check_integer, check_positive, check_real
from jaxaudit.errors import InputError
from jaxaudit.llm import AdamWSpec, DecoderSpec, LoraSpec
from jaxaudit.runs import RunOptions
from jaxaudit.unlearn.preference import PRESETS
from jaxaudit.unlearn.preference.presets import PresetName

SHORT_NAMES = {
    "gradient_ascent": "GA",
    "gradient_difference": "GD",
    "kl": "UKL",
    "idk": "DPO",
    "dpo": "DPO",
    "npo": "NPO",
}
"""What the paper calls the methods. Its text describes as DPO what is `jaxaudit.unlearn.preference.idk` here."""
FINE_TUNING = AdamWSpec(epochs=40, learning_rate=4e-3, decay="cosine", warmup_share=1 / 40)
ADAPTERS = LoraSpec(dropout=0.0)
_BIG = 5_000_000
"""Parameters."""
StudyPreset = Literal["paper", "cpu", "smollm2", "smoke"]


def is_big(model: DecoderSpec) -> bool:
    """Whether a core has enough to do with one model."""
    return model.num_params >= _BIG


def run_options(model: DecoderSpec) -> RunOptions:
    """How models of a size are carried out: small ones many at a time in one compiled loop, big ones one by one.

    Parameters
    ----------
    model
        Of the decoder, which is made of matrix products.

    Examples
    --------
    >>> run_options(DecoderSpec(400)).strategy, run_options(DecoderSpec(49152, width=576)).strategy
    ('scan', 'sequential')
    """
    return RunOptions(strategy="sequential", chunk=1) if is_big(model) else RunOptions(strategy="scan")


@dataclass(frozen=True)
class StudySpec:
    """All settings of a study but the data and the model.

    Parameters
    ----------
    reading
        ``pistol_paper`` or ``pistol_code``; see `jaxaudit.unlearn.preference.PRESETS`.
    fine_tuning
        Optimiser, passes and batch size by which the model learns the answers, and by which it is retrained without an
        edge.
    fine_tuning_lora
        Adapters that are trained instead of all parameters, and merged before unlearning; ``None``: all parameters are.
    lora
        Adapters of unlearning, on the fine-tuned model; ``None``: all parameters move.
    epochs, batch_size
        Of unlearning: passes over the forget set (the paper's forget epochs), and examples of each kind per update.
    rates
        Largest learning rates that are tried for every method.
    min_utility
        A rate is allowed if at least this share of the retained answers that were known exactly before unlearning
        still is, in [0, 1]; the paper has such a threshold, on ROUGE-1, and does not state it.
    tuning_seed, seeds
        Of the model on which rates are chosen, and of those that are reported; all different.
    free_running
        Whether ranks are taken along the models' own answers, too, as the paper's code does. Models that were measured
        without are made again.
    chunk
        Models that are trained at the same time; also what is lost at most when a study is killed.

    Raises
    ------
    InputError
        If a value is out of range.

    Examples
    --------
    >>> StudySpec().methods
    ('gradient_ascent', 'gradient_difference', 'kl', 'idk', 'npo')
    """

    reading: PresetName = "pistol_paper"
    fine_tuning: AdamWSpec = FINE_TUNING
    fine_tuning_lora: LoraSpec | None = None
    lora: LoraSpec | None = ADAPTERS
    epochs: int = 20
    batch_size: int = 4
    rates: tuple[float, ...] = (5e-5, 1e-4, 1.5e-4, 2e-4, 3e-4, 5e-4, 1e-3, 3e-3, 1e-2)
    min_utility: float = 0.8
    tuning_seed: int = 0
    seeds: tuple[int, ...] = (1, 2, 3)
    free_running: bool = False
    chunk: int = 2

    def __post_init__(self) -> None:
        check_choice("reading", self.reading, get_args(PresetName))
        check_integer("epochs", self.epochs, low=1)
        check_integer("batch_size", self.batch_size, low=1)
        check_integer("chunk", self.chunk, low=1)
        if not self.rates or len(set(self.rates)) < len(self.rates):
            raise InputError(f"rates must be different and at least one, got {self.rates}")
        for rate in self.rates:
            check_positive(rates=rate)
        if not 0 <= check_real("min_utility", self.min_utility) <= 1:
            raise InputError(f"min_utility must be in [0, 1], got {self.min_utility}")
        seeds = (self.tuning_seed, *self.seeds)
        if not self.seeds or len(set(seeds)) < len(seeds):
            raise InputError(f"seeds must differ from each other and from tuning_seed, got {seeds}")
        for seed in seeds:
            check_integer("seed", seed, low=0, high=2**32 - 1)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the unlearning methods."""
        preset = PRESETS[self.reading]
        names = ("gradient_ascent", "gradient_difference", "kl", preset.preference)
        return (*names, "npo") if preset.has_npo else names

    def identity(self) -> dict[str, Any]:
        """What the result of one model depends on, its own seed, edge, method and rate aside; plain JSON types."""
        chosen = ("fine_tuning", "fine_tuning_lora", "lora", "epochs", "batch_size")
        return {name: value for name, value in asdict(self).items() if name in chosen}


_SMOKE = StudySpec(
    fine_tuning=AdamWSpec(epochs=2, learning_rate=4e-3, decay="cosine", warmup_share=0.5),
    lora=LoraSpec(rank=2, dropout=0.0),
    epochs=1,
    rates=(1e-3, 1e-2),
    seeds=(1, 2),
    chunk=2,
)
_PAPER = StudySpec(
    fine_tuning=AdamWSpec(epochs=20, learning_rate=1e-4, decay="linear", warmup_share=1 / 20),
    fine_tuning_lora=LoraSpec(),
    rates=(1e-6, 5e-6, 1e-5, 2e-5, 5e-5),
    chunk=1,
)
_SMOLLM2 = StudySpec(
    fine_tuning=AdamWSpec(epochs=20, learning_rate=1e-3, decay="linear", warmup_share=0.1),
    fine_tuning_lora=ADAPTERS,
    rates=(1e-5, 3e-5, 5e-5, 1e-4),
    seeds=(1,),
    chunk=1,
)


def study_spec(preset: StudyPreset, **changes: Any) -> StudySpec:
    """The settings of a preset.

    Parameters
    ----------
    preset
        ``cpu``: for small decoders, minutes. ``paper``: passes, batches, warm-up and range of unlearning rates as the
        paper states them, and what it leaves open (the adapters' sizes, the rate of fine-tuning) as its code has it,
        but no dropout in unlearning; for a model that is really pretrained: a small one learns little in 20 passes.
        ``smollm2``: for a published model of some hundred million parameters on a CPU: one seed, adapters only.
        ``smoke``: seconds, and learns nothing.
    changes
        Fields of `StudySpec`.

    Raises
    ------
    InputError
        If there is no such preset, or a value is out of range.

    Examples
    --------
    >>> study_spec("paper").fine_tuning.epochs, study_spec("cpu", seeds=(5,)).seeds
    (20, (5,))
    """
    check_choice("preset", preset, get_args(StudyPreset))
    return replace(
        {"paper": _PAPER, "cpu": StudySpec(), "smollm2": _SMOLLM2, "smoke": _SMOKE}[preset], **changes
    )
