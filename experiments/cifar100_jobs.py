"""The audits behind the CIFAR-100 tables and figures: one per split, group size and seed, with all its methods.

Every script asks for the audits that it reads. The first one to ask does the work, the others find its scores in the
store; base training is shared by all methods, and by all audits with the same data and sign vectors.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import jax
import numpy as np
from cifar100_methods import METHODS, Problem
from cifar100_presets import MAIN_RECORDS, Preset

from jaxaudit.audit import run_audit
from jaxaudit.data import AuditData, Examples
from jaxaudit.data.image_split import Split, image_audit_data
from jaxaudit.data.images import (
    CIFAR10_MEAN,
    CIFAR10_STD,
    ImageSet,
    frozen_augmentation,
    load_images,
    shrink,
    subset,
)
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.keys import stream_key
from jaxaudit.models import Model, mlp, tinynet
from jaxaudit.pipeline import fastest_model
from jaxaudit.progress import Reporter
from jaxaudit.report import AuditReport
from jaxaudit.signs import num_sign_vectors
from jaxaudit.store import fingerprint, read_piece, write_piece
from jaxaudit.train import cross_entropy_loss
from jaxaudit.unlearn import Recipe, as_stages
from jaxaudit.unlearn.rewind import RewindSpec, estimate_gradient_norm, estimate_smoothness

Kind = Literal["heuristic", "group size", "clipping", "uncertified", "pairwise", "rewind"]
SPLITS: tuple[Split, ...] = ("uniform", "adversarial")
_ESTIMATE_ON = 1_000
"""Images that L and G of rewind-to-delete are estimated on, one gradient of each."""


class JobKey(NamedTuple):
    """Which audit."""

    kind: Kind
    split: Split
    group_size: int
    seed: int

    def __str__(self) -> str:
        return f"{self.kind}, {self.split} split, B = {self.group_size}, seed {self.seed}"


class Job(NamedTuple):
    """One audit before it is carried out."""

    key: JobKey
    preset: Preset
    """That of the lab; in the audits of rewind-to-delete with their own estimates of L and G."""
    data: AuditData
    model: Model
    methods: dict[str, Recipe]
    design: AuditDesign


class Lab:
    """The images, the store, and every audit that was asked for so far.

    Parameters
    ----------
    preset
        Sizes and hyper-parameters.
    source
        ``digits``, ``cifar100`` or a path; see `jaxaudit.data.images.load_images`.
    store
        Folder for trained models and scores.
    reporter
        Where progress goes.
    """

    def __init__(self, preset: Preset, source: str, store: Path | None, reporter: Reporter) -> None:
        self.preset = preset
        self.images = _images(preset, source)
        self.store = store
        self.reporter = reporter
        self._reports: dict[JobKey, AuditReport] = {}
        self.seconds: dict[JobKey, float] = {}
        """Wall time of the audits so far; of those in the store, that of carrying them out, where it is known."""
        self.rewind: dict[JobKey, RewindSpec] = {}
        """Settings of the audits of rewind-to-delete so far, with their own estimates of L and G."""

    def job(self, key: JobKey) -> Job:
        """What an audit consists of."""
        preset = self.preset
        data = image_audit_data(
            self.images,
            split=key.split,
            num_candidates=preset.num_candidates,
            group_size=key.group_size,
            seed=key.seed,
        )
        model = self._model(data)
        if key.kind == "rewind":
            self.rewind[key] = _estimated(preset.rewind, key.seed, model, data)
            preset = replace(preset, rewind=self.rewind[key])
        methods = methods_of(preset, key, model, data.num_retain)
        return Job(key, preset, data, model, methods, design_of(preset, key))

    def audit(self, key: JobKey) -> AuditReport:
        """The result of an audit; carried out if it is not in the store."""
        if key not in self._reports:
            began = time.perf_counter()
            job = self.job(key)
            self.reporter.say(f"{key}: {job.data.num_groups} groups, {len(job.methods)} methods")
            self._reports[key] = run_audit(
                job.data,
                job.model,
                job.methods,
                job.design,
                training=job.preset.training,
                seed=key.seed,
                store=self.store,
                reporter=self.reporter,
            )
            seconds = self._remember(job, time.perf_counter() - began)
            if seconds is not None:
                self.seconds[key] = round(seconds, 1)
        return self._reports[key]

    @property
    def data_name(self) -> str:
        """As a reader knows it."""
        return "CIFAR-100" if self.images.name == "cifar100" else self.images.name

    def _remember(self, job: Job, seconds: float) -> float | None:
        """Wall time of an audit: what the store knows, and this call too if it did some of the work."""
        if self.store is None:
            return seconds
        costs = {name: as_stages(recipe.method).cost for name, recipe in job.methods.items()}
        about = [job.data.fingerprint, str(job.key), repr(job.design), job.model.description, costs]
        name = f"seconds/{fingerprint([*about, repr(job.preset.training)])[:32]}"
        kept = read_piece(self.store, name, self.reporter.say)
        before = None if kept is None else kept.note["seconds"]
        if all(result.seconds is None for result in self._reports[job.key].methods):
            return before
        total = seconds + (before or 0.0)
        write_piece(self.store, name, (), {"seconds": total})
        return total

    def _model(self, data: AuditData) -> Model:
        preset = self.preset
        model = network(preset, data.retain.x.shape[1:], data.num_classes)
        num_runs = preset.num_calibration_runs + preset.num_audit_runs
        return fastest_model(model, data, preset.training, num_runs, store=self.store, reporter=self.reporter)


def _estimated(spec: RewindSpec, seed: int, model: Model, data: AuditData) -> RewindSpec:
    """L and G at x0, on retained images only, so that they say nothing about what is forgotten."""
    loss_fn = cross_entropy_loss(model.logits_fn)
    initial_params = jax.jit(model.init_fn)(stream_key(seed, "init"))
    retained = Examples(*(leaf[:_ESTIMATE_ON] for leaf in data.retain))
    smoothness = estimate_smoothness(jax.random.key(seed), loss_fn, initial_params, retained)
    norm = estimate_gradient_norm(loss_fn, initial_params, retained)
    # Rounded, because the last digits of float32 differ between machines.
    return replace(spec, smoothness=float(f"{smoothness:.2g}"), gradient_bound=float(f"{norm:.2g}"))


def network(preset: Preset, shape: tuple[int, ...], num_classes: int) -> Model:
    """The model of a preset."""
    if preset.widths is None:
        return mlp(shape, num_classes, ())
    return tinynet(shape, num_classes, preset.widths)


def _images(preset: Preset, source: str) -> ImageSet:
    images = load_images(source)
    num_classes = preset.num_classes and min(preset.num_classes, len(images.class_names))
    images = subset(images, num_classes=num_classes, num_train=preset.num_train, num_test=preset.num_test)
    if preset.frozen_crops:
        images = frozen_augmentation(jax.random.key(0), images)
    if preset.image_size is not None:
        images = shrink(images, preset.image_size)
    if not preset.cifar10_statistics:
        return images
    if images.train_images.shape[-1] != len(CIFAR10_MEAN):
        raise InputError(f"override statistics must be for images of 3 channels, got {images.name}")
    return images._replace(mean=np.array(CIFAR10_MEAN), std=np.array(CIFAR10_STD))


def heuristic_key(preset: Preset, split: Split, seed: int) -> JobKey:
    """The audit of all heuristics."""
    return JobKey("heuristic", split, preset.group_sizes[0], seed)


def joint_key(preset: Preset, kind: Kind, split: Split, seed: int) -> JobKey:
    """An audit with the joint predictor."""
    num_groups = 2 if kind == "pairwise" else preset.joint_groups
    return JobKey(kind, split, preset.num_candidates // num_groups, seed)


def methods_of(preset: Preset, key: JobKey, model: Model, num_retain: int) -> dict[str, Recipe]:
    """The methods of an audit, for so many retained images."""
    num_forget = preset.num_groups(key.group_size) // 2 * key.group_size
    return METHODS[key.kind](Problem(preset, cross_entropy_loss(model.logits_fn), num_retain, num_forget))


def design_of(preset: Preset, key: JobKey) -> AuditDesign:
    """The design of an audit."""
    num_groups = preset.num_groups(key.group_size)
    # The soft evidence is not shown, so its temperature need not be chosen.
    common = {"num_groups": num_groups, "temperature": 1.0}
    if key.kind in ("heuristic", "group size"):
        return AuditDesign(
            **common,
            num_guesses=preset.guesses(MAIN_RECORDS, key.group_size) or 2,
            num_calibration_runs=preset.num_calibration_runs,
            num_audit_runs=preset.num_audit_runs,
        )
    certified = key.kind == "clipping"
    calibrations = preset.pairwise_calibrations if key.kind == "pairwise" else preset.joint_calibrations
    return AuditDesign(
        **common,
        predictor="joint",
        num_calibration_runs=calibrations * num_sign_vectors(num_groups),
        num_audit_runs=preset.certified_audit_runs if certified else preset.figure_audit_runs,
    )
