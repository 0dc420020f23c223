"""What the CIFAR-100 scripts share: options, and the way from a script to its page."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import cifar100_cost
import cifar100_page
from cifar100_jobs import JobKey, Lab
from cifar100_page import Origin, Page
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
    """Deviations of the reference code to follow: peak-rate, noisy-decay, noisy-epochs, hessian-damping,
    rewind-delta, statistics or frozen-crops."""
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

    def stem(self, images: str) -> str:
        """Name of the files of a page: the preset, and whatever differs from it, so that nothing is overwritten.

        Examples
        --------
        >>> Options().stem("cifar100"), Options(seeds=(4, 5), reference=("peak-rate",)).stem("digits")
        ('cpu', 'cpu-digits-peak-rate-seeds-4-5')
        """
        data = () if images == "cifar100" else (images,)
        seeds = () if self.seeds is None else ("seeds", *map(str, self.seeds))
        return "-".join((self.preset, *data, *self.reference, *seeds))

    def arguments(self, images: str) -> str:
        """What to type to get the same page; a path is not shown.

        Examples
        --------
        >>> Options(seeds=(4, 5), data="digits").arguments("digits")
        '--preset cpu --data digits --seeds 4 5'
        >>> Options(data="somewhere/photos.npz").arguments("photos")
        '--preset cpu --data PATH'
        """
        source = images if images in ("digits", "cifar100") else "PATH"
        parts = ["--preset", self.preset, "--data", source]
        parts += ["--reference", *self.reference] if self.reference else []
        parts += ["--seeds", *map(str, self.seeds)] if self.seeds else []
        return " ".join(parts)


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
    summarise: Callable[[Sequence[Page], Lab, str], str] | None = None,
) -> int:
    """Carry out some scripts, one after the other, on one set of audits; then write a summary of their pages."""

    def show(options: Options) -> None:
        preset = make_preset(options.preset, options.reference, options.seeds)
        keys = tuple(dict.fromkeys(key for script in scripts for key in script.keys(preset)))
        if options.dry_run:
            print(cifar100_cost.estimate(preset, options.source, keys))
            return
        lab = Lab(preset, options.source, options.shelf, default_reporter(options.quiet))
        for key in keys:
            lab.audit(key)
        pages = [_show(script, lab, options) for script in scripts]
        if summarise is not None and options.folder is not None:
            stem = options.stem(lab.images.name)
            target = options.folder / "cifar100" / f"{stem}.md"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(summarise(pages, lab, stem))
            print(f"written: {target}")

    return carry_out(Options, description, argv, show)


def _show(script: Script, lab: Lab, options: Options) -> Page:
    """Print the page, and write it; returns it."""
    page = script.build(lab)
    page = replace(page, title=f"{page.title} ({lab.data_name})")
    print(cifar100_page.text_table(page))
    if options.folder is None:
        return page
    origin = Origin(
        command=f"python experiments/{page.script} {options.arguments(lab.images.name)}",
        stem=options.stem(lab.images.name),
        data={"name": lab.images.name, "description": lab.images.description},
        seconds={str(key): lab.seconds.get(key) for key in script.keys(lab.preset)},
    )
    for path in cifar100_page.save(options.folder, page, origin, lab.preset):
        print(f"written: {path}")
    return page
