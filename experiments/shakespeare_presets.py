"""Sizes of the Shakespeare experiment, and the methods of Table 1a at each size."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jaxaudit.data import AuditData
from jaxaudit.design import AuditDesign
from jaxaudit.models import Model, char_lstm
from jaxaudit.train import SgdSpec, cross_entropy_loss, num_batches
from jaxaudit.unlearn import (
    Certificate,
    HessianSpec,
    Recipe,
    Unlearner,
    gradient_ascent,
    hessian_unlearning,
    interleaved_descent_ascent,
    no_unlearning,
    retain_finetune,
    then,
)

HERE = Path(__file__).parent
PresetName = Literal["paper", "cpu", "smoke"]
_HEURISTIC = Certificate.none("a heuristic: nothing is proved about it")


class PaperRow(NamedTuple):
    """One row of Table 1a: a method, its settings, and the bound that the paper prints."""

    method: str
    num_descents: int | None
    forget_weight: float | None
    forget_epochs: int | None
    epsilon: float

    @property
    def name(self) -> str:
        """Short and unique."""
        if self.method != "ida":
            return self.method
        return f"ida-{self.num_descents}-{self.forget_weight:g}-{self.forget_epochs}"

    @property
    def title(self) -> str:
        """What a reader sees."""
        if self.method != "ida":
            return _TITLES[self.method]
        return f"IDA, q = {self.num_descents}, lambda = {self.forget_weight:g}, E_f = {self.forget_epochs}"


_TITLES = {
    "retain-finetune": "retain fine-tuning",
    "ascent": "ascent, then fine-tuning",
    "hessian": "Hessian (LiSSA)",
}


def paper_rows() -> list[PaperRow]:
    """Table 1a as printed, without the row that it repeats."""
    document = json.loads((HERE / "paper_table1a.json").read_text())
    return [PaperRow(*row) for row in document["rows"]]


@dataclass(frozen=True)
class Preset:
    """One size of the experiment."""

    text: Mapping[str, Any]
    """Options of `load_shakespeare`."""
    hidden: int
    training: SgdSpec
    retain_rate: float
    """Learning rate of unlearning on retain data, and of descent-ascent."""
    ascent_rate: float
    hessian: HessianSpec
    design: AuditDesign
    epochs: int = 8
    """Passes over the retain set in all; descent-ascent takes the paper's E_f of 4 or 7 of 8."""
    ascent_epochs: int = 2
    """Passes of ascent over the forget set; as many fewer over the retain set follow."""
    methods: tuple[str, ...] = ()
    """Rows of the table that are audited; none: all."""

    @property
    def model(self) -> Model:
        """The character LSTM."""
        return char_lstm(self.text.get("vocabulary_size", 100), 8, self.hidden)


_REFERENCE_SGD = SgdSpec(15, 0.1, batch_size=256, schedule="constant", clip_norm=1.0)

PRESETS: dict[PresetName, Preset] = {
    # What the reference code does: its rates are half of those in the text, and its damping is 0.05 larger.
    "paper": Preset(
        text={"num_roles": 300, "num_groups": 400, "window": 80, "stride": 1},
        hidden=256,
        training=_REFERENCE_SGD,
        retain_rate=0.05,
        ascent_rate=0.005,
        hessian=HessianSpec(
            num_recursions=5, depth=700, scale=5000.0, batch_size=256, damping=0.0505, sigma=1e-3
        ),
        design=AuditDesign(num_groups=400, num_guesses=100),
    ),
    "cpu": Preset(
        text={
            "num_roles": 40,
            "forget_share": 0.5,
            "num_groups": 400,
            "window": 40,
            "stride": 40,
            "longest_speech": 60,
        },
        hidden=32,
        # The paper's rates times ten.
        training=SgdSpec(12, 1.0, batch_size=16, schedule="constant", clip_norm=1.0, momentum=0.9),
        retain_rate=0.5,
        ascent_rate=0.05,
        hessian=HessianSpec(
            num_recursions=2,
            depth=50,
            scale=2.0,
            batch_size=16,
            damping=0.0505,
            sigma=1e-3,
            num_eigenvalue_updates=10,
        ),
        design=AuditDesign(num_groups=400, num_guesses=100),
    ),
    "smoke": Preset(
        text={
            "num_roles": 6,
            "forget_share": 0.5,
            "num_groups": 8,
            "window": 20,
            "stride": 10,
            "longest_speech": 60,
        },
        hidden=8,
        training=SgdSpec(2, 0.5, batch_size=32, schedule="constant", clip_norm=1.0),
        retain_rate=0.1,
        ascent_rate=0.02,
        hessian=HessianSpec(num_recursions=1, depth=3, scale=100.0, batch_size=8, num_eigenvalue_updates=2),
        design=AuditDesign(num_groups=8, num_guesses=4, num_calibration_runs=6, num_audit_runs=2),
        methods=("ida-1-0.5-4", "retain-finetune", "ascent", "hessian"),
    ),
}


def methods_of(preset: Preset, data: AuditData) -> dict[str, Recipe]:
    """The rows of Table 1a and a baseline that unlearns nothing, by name.

    Equal stages are one object, so that they are compiled once.
    """
    build = _Builder(preset, data)
    methods = {
        "none": Recipe(no_unlearning(), Certificate.none("nothing is unlearned"), title="no unlearning"),
    }
    for row in paper_rows():
        if preset.methods and row.name not in preset.methods:
            continue
        methods[row.name] = Recipe(build.method(row), _HEURISTIC, title=row.title)
    return methods


class _Builder:
    """Builds methods for one preset and data set."""

    def __init__(self, preset: Preset, data: AuditData) -> None:
        self.preset = preset
        self.loss = cross_entropy_loss(preset.model.logits_fn)
        self.num_retain = data.num_retain
        self.num_forget = data.num_groups // 2 * data.group_size
        self._finetunes: dict[int, Unlearner] = {}

    def method(self, row: PaperRow) -> Any:
        """The method of a row."""
        preset = self.preset
        if row.method == "retain-finetune":
            return self.finetune(preset.epochs)
        if row.method == "ascent":
            settings = self._settings(preset.ascent_epochs, preset.ascent_rate, self.num_forget)
            return then(
                gradient_ascent(self.loss, **settings), self.finetune(preset.epochs - preset.ascent_epochs)
            )
        if row.method == "hessian":
            sizes = {"num_retain": self.num_retain, "num_forget": self.num_forget}
            return hessian_unlearning(self.loss, spec=preset.hessian, **sizes)
        assert row.num_descents is not None
        assert row.forget_weight is not None
        assert row.forget_epochs is not None
        interleaved = interleaved_descent_ascent(
            self.loss,
            num_descents=row.num_descents,
            forget_weight=row.forget_weight,
            num_forget_batches=num_batches(self.num_forget, preset.training.batch_size),
            **self._settings(row.forget_epochs, preset.retain_rate, self.num_retain),
        )
        return then(interleaved, self.finetune(preset.epochs - row.forget_epochs))

    def finetune(self, epochs: int) -> Unlearner:
        """Passes over the retain set."""
        if epochs not in self._finetunes:
            settings = self._settings(epochs, self.preset.retain_rate, self.num_retain)
            self._finetunes[epochs] = retain_finetune(self.loss, **settings)
        return self._finetunes[epochs]

    def _settings(self, epochs: int, rate: float, num_examples: int) -> dict[str, Any]:
        """As in training, with another rate."""
        sgd = replace(self.preset.training, epochs=epochs, learning_rate=rate)
        num_updates = sgd.num_updates(num_examples)
        optimizer = sgd.optimizer(num_updates)
        return {"optimizer": optimizer, "num_updates": num_updates, "batch_size": sgd.batch_size}
