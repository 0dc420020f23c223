"""Pages of the PISTOL experiments: text, Markdown, JSON and figures from the same outcomes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxaudit.provenance import provenance
from jaxaudit.report.blocks import Code, Figure, Section, Table, Text, Warn
from jaxaudit.report.markdown import markdown_page
from jaxaudit.study import Effect, Outcome
from jaxaudit.study.page import REMEMBERED, memory, text_table, with_interval

if TYPE_CHECKING:
    from pistol import Options


class Check(NamedTuple):
    """Something that was expected, and what the numbers say."""

    expected: str
    verdict: str
    numbers: str


@dataclass(frozen=True)
class Page:
    """What a script makes of its outcomes."""

    name: str
    """File name, such as ``table2``."""
    title: str
    script: str
    summary: tuple[str, ...]
    """Sentences that are computed from the numbers."""
    sections: tuple[Section, ...]
    checks: tuple[Check, ...]
    figures: dict[str, tuple[bytes, str]]
    """By name: file and caption."""
    document: dict[str, Any]
    warnings: tuple[Warn, ...] = ()
    """What forbids to read the numbers as results."""


def effect_check(expected: str, effect: Effect) -> Check:
    """A check whose verdict follows from an effect's intervals."""
    numbers = f"{with_interval(effect.raw)}; beyond retraining {with_interval(effect.net)}"
    return Check(expected, effect.verdict, numbers)


def summarise(claim: str, checks: Sequence[Check], cases: str = "methods") -> str:
    """One sentence: in how many cases a claim shows, and in how many still once the floor is subtracted."""
    raw = sum(check.verdict.startswith("shows") and "only beyond" not in check.verdict for check in checks)
    net = sum(check.verdict in ("shows", "shows only beyond retraining") for check in checks)
    against = sum(check.verdict == "reversed" for check in checks)
    sentence = f"{claim}: this shows for {raw} of {len(checks)} {cases} as the paper measures it"
    sentence += f" (reversed for {against})" if against else ""
    return f"{sentence}, and for {net} once the score of the retrained models is subtracted."


def checks_section(checks: Sequence[Check]) -> Section:
    """What was expected, and whether it shows."""
    return Section(
        "What was expected, and whether it shows",
        (Table(("expected", "verdict", "difference (95 % interval)"), tuple(map(tuple, checks))),),
    )


def memory_check(outcomes: Sequence[Outcome], name: str = "") -> Check:
    """Whether the model knew everything before it unlearned."""
    recalls = memory(outcomes)
    recall, each = recalls.mean(), ", ".join(f"{one:.3f}" for one in recalls)
    return Check(
        f"{name + ': ' if name else ''}before unlearning, all answers are remembered (ROUGE-1 at least {REMEMBERED})",
        "yes" if recall >= REMEMBERED else "NO: what follows says nothing about unlearning",
        f"recall {recall:.3f} (by seed: {each})",
    )


def text(page: Page) -> str:
    """Tables and checks for a terminal."""
    parts = [page.title, *(f"warning: {one.text}" for one in page.warnings), *page.summary]
    for section in (*page.sections, checks_section(page.checks)):
        tables = [block for block in section.blocks if isinstance(block, Table)]
        if tables and not section.title.startswith("Model"):
            parts += ["", section.title, *map(text_table, tables)]
    return "\n".join(parts)


def markdown(page: Page, options: "Options") -> str:
    """The Markdown page."""
    command = f"python experiments/{page.script}{options.command}"
    figures = [Figure(_file(page, name, options), caption) for name, (_, caption) in page.figures.items()]
    first = Section("In short", (Code(command), *page.warnings, *map(Text, page.summary), *figures))
    return markdown_page(page.title, [first, checks_section(page.checks), *page.sections])


def _file(page: Page, name: str, options: "Options") -> str:
    return f"{_stem(page, options)}_{name}.png"


def _stem(page: Page, options: "Options") -> str:
    return f"{page.name}_{options.stem}"


def save(folder: Path, page: Page, options: "Options") -> list[Path]:
    """Write JSON, Markdown and figures; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "title": page.title,
        "preset": options.settings,
        "model": options.model,
        "summary": page.summary,
        "warnings": [one.text for one in page.warnings],
        "checks": [check._asdict() for check in page.checks],
        **page.document,
        "provenance": provenance(),
    }
    stem = _stem(page, options)
    contents = {
        f"{stem}.json": json.dumps(document, allow_nan=False).encode() + b"\n",
        f"{stem}.md": markdown(page, options).encode(),
        **{_file(page, name, options): image for name, (image, _) in page.figures.items()},
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]


def show(page: Page, options: "Options") -> None:
    """Print the page, and write it if there is a folder for it."""
    print(text(page))
    for path in [] if options.folder is None else save(options.folder, page, options):
        print(f"written: {path}")
