"""What the CIFAR-100 scripts share: options, and the way from a script to its page."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import cifar100_cost
import cifar100_page
from cifar100_jobs import JobKey, Lab
from cifar100_page import Page
from cifar100_presets import HERE, Preset, make_preset
from command_line import carry_out

from jaxaudit.progress import default_reporter


@dataclass(frozen=True)
class Options:
    """Options of the CIFAR-100 scripts."""

    preset: Literal["cpu", "paper", "smoke"] = "cpu"
    """Minutes on a small machine, the paper's sizes, or a test of seconds."""
    data: str | None = None
    """"digits", "cifar100", or a path to CIFAR-100 in any of its forms. Default: cifar100 where the environment
    variable JAXAUDIT_DATA names its folder, else digits."""
    store: Path | None = None
    """Folder for trained models and scores, shared by all scripts. Default: ~/.cache/jaxaudit/experiments."""
    out: Path | None = None
    """Folder for pages. Default: experiments/results; for smoke nothing is written."""
    seeds: tuple[int, ...] | None = None
    """Seeds to take the spread over. Default: those of the preset."""
    reference: tuple[str, ...] = ()
    """Deviations of the reference code to follow: peak-rate, noisy-decay, noisy-epochs, hessian-damping or
    rewind-delta."""
    dry_run: bool = False
    """Only print what would be done and what it would cost here."""
    quiet: bool = False
    """Show no progress."""

    @property
    def source(self) -> str:
        """Where the images come from."""
        return self.data or ("cifar100" if os.environ.get("JAXAUDIT_DATA") else "digits")

    @property
    def shelf(self) -> Path:
        """The store."""
        return self.store or Path.home() / ".cache" / "jaxaudit" / "experiments"

    @property
    def folder(self) -> Path | None:
        """Where pages go."""
        return self.out or (None if self.preset == "smoke" else HERE / "results")


class Script(NamedTuple):
    """One table or figure."""

    keys: Callable[[Preset], Sequence[JobKey]]
    """The audits that it reads."""
    build: Callable[[Lab], Page]


def main(script: Script, description: str, argv: Sequence[str] | None = None) -> int:
    """Carry out one script; returns the exit code, 2 for bad input."""
    return run((script,), description, argv)


def run(
    scripts: Sequence[Script],
    description: str,
    argv: Sequence[str] | None = None,
    summarise: Callable[[Sequence[Page], Preset], str] | None = None,
) -> int:
    """Carry out some scripts, one after the other, on one set of audits; then write a summary of their pages."""

    def show(options: Options) -> None:
        preset = make_preset(options.preset, options.reference, options.seeds)
        if options.dry_run:
            keys = dict.fromkeys(key for script in scripts for key in script.keys(preset))
            print(cifar100_cost.estimate(preset, options.source, tuple(keys)))
            return
        lab = Lab(preset, options.source, options.shelf, default_reporter(options.quiet))
        pages = [_show(script.build(lab), lab, options) for script in scripts]
        if summarise is not None and options.folder is not None:
            target = options.folder / "cifar100" / f"{preset.name}.md"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(summarise(pages, preset))
            print(f"written: {target}")

    return carry_out(Options, description, argv, show)


def _show(page: Page, lab: Lab, options: Options) -> Page:
    """Print the page, and write it; returns it."""
    print(cifar100_page.text_table(page))
    if options.folder is None:
        return page
    command = f"python experiments/{page.script} --preset {options.preset} --data {options.source}"
    data = {"name": lab.images.name, "description": lab.images.description}
    for path in cifar100_page.save(options.folder, page, command, lab.preset, data):
        print(f"written: {path}")
    return page
