"""TOFU's authors as the data of a study: who is forgotten, and the two data sets of Table 1."""

import shlex
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from pistol import Options, Studies

from jaxaudit.checks import check_integer
from jaxaudit.data.pistol import AuthorData, author_label, read_tofu, relate_authors
from jaxaudit.data.pistol.tofu import NUM_RELATED
from jaxaudit.errors import InputError
from jaxaudit.study import AuthorQuestions, RateChoice

ORIGINAL, STRUCTURED = "original", "structured"
CONNECTED, ALONE = "connected", "alone"


@dataclass(frozen=True, kw_only=True)
class TofuOptions(Options):
    """Options of Table 1."""

    tofu: Path
    """TOFU's file of pairs (full.json), or one of fewer authors: .json or .jsonl, question and answer, 20 per author.
    It is not part of this package."""
    connected: tuple[int, ...]
    """Authors of one country, counted from 0 in the order of the file; the paper: the nine born in the USA."""
    alone: tuple[int, ...]
    """Authors each of whom is the only one of a country."""
    names: dict[int, str] = field(default_factory=dict)
    """Names of connected authors, as NUMBER NAME ..., where they are not found in the pairs."""
    draw: int = 0
    """Seed by which it is drawn who is forgotten, and of the relations."""

    @property
    def num_forgotten(self) -> int:
        """Authors of each kind that are forgotten, one at a time; the paper: three."""
        return 1 if self.preset == "smoke" else 3

    @property
    def stem(self) -> str:
        """Of the names of files."""
        return super().stem + (f"_draw-{self.draw}" if self.draw else "")

    @property
    def command(self) -> str:
        """Options that say what is computed, as one types them."""
        lists = {
            "connected": self.connected,
            "alone": self.alone,
            "names": [part for one in self.names.items() for part in one],
        }
        given = [
            f"--{name} {' '.join(map(shlex.quote, map(str, values)))}"
            for name, values in lists.items()
            if values
        ]
        draw = f" --draw {self.draw}" if self.draw else ""
        return f"{super().command} --tofu {shlex.quote(str(self.tofu))} {' '.join(given)}{draw}"


class TofuStudies(Studies):
    """The two studies of Table 1: of a file as it is, and with relations.

    Raises
    ------
    InputError
        If there are too few authors of a kind, one is named twice or not there, nobody is left to choose rates on, or
        the seed is out of range.
    """

    questions_type = AuthorQuestions
    options: TofuOptions

    def __init__(self, options: TofuOptions, *arguments) -> None:
        super().__init__(options, *arguments)
        self.forgotten = cache(self._forgotten)

    @cached_property
    def original(self) -> AuthorData:
        """The file, with what is said of its authors."""
        options = self.options
        if options.data != "generated":
            raise InputError(f"data must be left out, since tofu names the file, got {options.data}")
        data = AuthorData(read_tofu(options.tofu))
        kinds: dict[int, str] = {}
        for kind, numbers in ((CONNECTED, options.connected), (ALONE, options.alone)):
            for number in numbers:
                check_integer(kind, number, low=0, high=data.num_authors - 1)
                if number in kinds:
                    raise InputError(f"{kind} must name authors who are not named before, got {number}")
                kinds[number] = kind
        return replace(data, kinds=kinds)

    def _data(self, name: str) -> AuthorData:
        if name == ORIGINAL:
            return self.original
        chosen, options = self.forgotten(CONNECTED), self.options
        others = [number for number in options.connected if number not in chosen]
        return relate_authors(self.original, chosen, others, seed=options.draw, names=options.names)

    def _forgotten(self, kind: str) -> tuple[int, ...]:
        """Numbers of the authors of a kind that are forgotten; always the same ones."""
        count, options = self.options.num_forgotten, self.options
        numbers = {CONNECTED: options.connected, ALONE: options.alone}[kind]
        least = count + (NUM_RELATED if kind == CONNECTED else 0)
        if len(numbers) < least:
            given = " ".join(map(str, numbers)) or "none"
            raise InputError(f"{kind} must name at least {least} authors, got {given}")
        draw = check_integer("draw", options.draw, low=0, high=2**32 - 1)
        rng = np.random.default_rng([draw, *kind.encode()])
        return tuple(sorted(int(number) for number in rng.choice(numbers, count, replace=False)))

    def labels(self, kind: str) -> tuple[str, ...]:
        """Of the authors of a kind that are forgotten."""
        return tuple(author_label(number) for number in self.forgotten(kind))

    def _rates(self, name: str) -> dict[str, RateChoice]:
        """One per method and model, as in the paper: those of the original file, so that the data alone differ."""
        return super()._rates(ORIGINAL) if name == ORIGINAL else self.rates(ORIGINAL)

    def tuning_edges(self, name: str) -> tuple[str, ...]:
        """The first author of whom nothing is said."""
        options = self.options
        for number in range(self.original.num_authors):
            if number not in (*options.connected, *options.alone):
                return (author_label(number),)
        raise InputError(
            f"{options.tofu} must hold an author who is neither connected nor alone, to choose rates on"
        )

    def num_tuned(self, name: str) -> int:
        """Authors on which rates are chosen."""
        return len(self.tuning_edges(name)) if name == ORIGINAL else 0
