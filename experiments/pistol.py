"""What the PISTOL scripts share: options, models and studies, and the way from a script to its page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import pistol_cost
import pistol_page
from command_line import carry_out
from pistol_data import KNOWN, KNOWN_DEGREES, DataName, Source, load, tuning_edges
from pistol_page import Page

from jaxaudit.data.pistol import PistolData
from jaxaudit.llm import AdamWSpec
from jaxaudit.progress import Reporter, default_reporter
from jaxaudit.study import (
    Outcome,
    QuestionSet,
    RateChoice,
    Study,
    StudySpec,
    choose_rates,
    outcome,
    outcome_cases,
    small_model,
    study_spec,
)
from jaxaudit.study.languagemodel import PRETRAINING, SHORT_PRETRAINING
from jaxaudit.study.page import BASELINES
from jaxaudit.unlearn.preference.presets import PresetName

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Options:
    """Options of the PISTOL scripts."""

    preset: Literal["cpu", "paper", "smoke"] = "cpu"
    """For a small decoder and a small machine; the paper's settings, made for pretrained models; or a test."""
    reading: PresetName = "pistol_paper"
    """Losses and optimiser as the paper's text describes them, or as its code has them."""
    data: Source = "generated"
    """Fresh values, or the published files in $JAXAUDIT_DATA/pistol."""
    size: Literal["tiny", "small"] = "tiny"
    """The decoder: 2 layers of width 64, or 4 of 128."""
    store: Path | None = None
    """Folder for models and results, shared by all scripts. Default: ~/.cache/jaxaudit/pistol."""
    out: Path | None = None
    """Folder for pages. Default: experiments/results/pistol; for smoke nothing is written."""
    seeds: tuple[int, ...] | None = None
    """Seeds that are reported, not 0, on which rates are chosen. Default: those of the preset."""
    chunk: int | None = None
    """Models that advance together. Default: that of the preset; a GPU can take many."""
    dry_run: bool = False
    """Only print what would be done and what it would cost here."""
    quiet: bool = False
    """Show no progress."""

    @property
    def spec(self) -> StudySpec:
        """Settings of the studies."""
        changes = {"reading": self.reading, "seeds": self.seeds, "chunk": self.chunk}
        return study_spec(
            self.preset, **{name: value for name, value in changes.items() if value is not None}
        )

    @property
    def pretraining(self) -> AdamWSpec:
        """Of the small decoder."""
        return SHORT_PRETRAINING if self.preset == "smoke" else PRETRAINING

    @property
    def shelf(self) -> Path:
        """The store."""
        return self.store or Path.home() / ".cache" / "jaxaudit" / "pistol"

    @property
    def folder(self) -> Path | None:
        """Where pages go."""
        return self.out or (None if self.preset == "smoke" else HERE / "results" / "pistol")


class Need(NamedTuple):
    """Edges of a data set that a script lets models forget."""

    data: DataName
    edges: tuple[str, ...]


class Lab:
    """Studies, made when they are asked for.

    Parameters
    ----------
    options
        Of the command line.
    reporter
        Where progress goes.
    """

    def __init__(self, options: Options, reporter: Reporter) -> None:
        self.options, self.reporter = options, reporter
        self.spec = options.spec
        self.data = cache(self._data)
        self.study = cache(self._study)
        self.rates = cache(self._rates)

    @property
    def methods(self) -> tuple[str, ...]:
        """Baselines first."""
        return (*BASELINES, *self.spec.methods)

    def _data(self, name: DataName) -> PistolData:
        return load(name, self.options.data, small=self.options.preset == "smoke")

    def _study(self, name: DataName) -> Study:
        data, options = self.data(name), self.options
        model = small_model(
            data,
            size=options.size,
            pretraining=options.pretraining,
            known=KNOWN_DEGREES if name in KNOWN else None,
            store=options.shelf,
            reporter=self.reporter,
        )
        return Study(QuestionSet(data, model), self.spec, store=options.shelf, reporter=self.reporter)

    def _rates(self, name: DataName) -> dict[str, RateChoice]:
        if name in KNOWN:
            return self.rates("dataset-2")  # one rate per method and model, as in the paper
        return choose_rates(self.study(name), tuning_edges(name, self.data(name)))

    def outcomes(self, name: DataName, edges: tuple[str, ...]) -> list[Outcome]:
        """Baselines and all methods on some edges together."""
        study, choices = self.study(name), self.rates(name)
        rates = {method: choice.rate for method, choice in choices.items()}
        study.ensure(outcome_cases(study, edges, rates))
        return [outcome(study, edges, method, rates.get(method, 0.0)) for method in self.methods]


class Script(NamedTuple):
    """One table."""

    needs: Callable[[Lab], Sequence[Need]]
    """What it reads."""
    build: Callable[[Lab], Page]


def main(script: Script, description: str, argv: Sequence[str] | None = None) -> int:
    """Carry out one script; returns the exit code, 2 for bad input."""
    return run((script,), description, argv)


def run(scripts: Sequence[Script], description: str, argv: Sequence[str] | None = None) -> int:
    """Carry out some scripts, one after the other, on the same models."""

    def show(options: Options) -> None:
        lab = Lab(options, default_reporter(options.quiet))
        if options.dry_run:
            needs = [need for script in scripts for need in script.needs(lab)]
            data = {need.data: lab.data(need.data) for need in needs}
            print(pistol_cost.estimate(lab.spec, options, data, needs))
            return
        for script in scripts:
            page = script.build(lab)
            print(pistol_page.text(page))
            if options.folder is not None:
                for path in pistol_page.save(options.folder, page, options):
                    print(f"written: {path}")

    return carry_out(Options, description, argv, show)
