"""Sizes and hyper-parameters of the CIFAR-100 experiments: the paper's, those of a small machine, those of a test.

A preset is data: every table and figure reads the same one, so that they share their models.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from jaxaudit.checks import check_choice
from jaxaudit.errors import InputError
from jaxaudit.train import SgdSpec
from jaxaudit.unlearn.clipping import ClippingSpec
from jaxaudit.unlearn.hessian import HessianSpec
from jaxaudit.unlearn.rewind import RewindSpec

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Interleaving:
    """Settings of interleaved descent-ascent (IDA)."""

    sgd: SgdSpec
    """The interleaved phase; its epochs are the paper's E_f."""
    forget_weight: float = 0.75
    """The paper's lambda."""
    descents: tuple[int, ...] = (1, 2, 4)
    """Values of the paper's q that are compared."""


@dataclass(frozen=True)
class Preset:
    """Everything that the tables and figures have in common, except the source of the images."""

    name: str
    image_size: int | None
    """Side of the images after averaging; ``None``: as they are."""
    num_classes: int | None
    num_train: int | None
    """Training images, retained ones and candidates; ``None``: all."""
    num_test: int | None
    num_candidates: int
    """Images that may be forgotten, the paper's |D_f|."""
    group_sizes: tuple[int, ...]
    """B of Table 5, beside the paper's 1, 10, 100 and 500; the first is that of the other tables of heuristics."""
    widths: tuple[int, ...] | None
    """Channels of each block of TinyNet; ``None``: a dense layer, which compiles in no time."""
    training: SgdSpec
    hessian_training: SgdSpec | None
    """Training before the Hessian-based method; ``None``: that of all others."""
    finetune: SgdSpec
    """Fine-tuning on the retain set. Its epochs are those of all unlearning: what comes before is subtracted."""
    ascent: SgdSpec
    interleaving: Interleaving
    hessian: HessianSpec
    hessian_sigmas: tuple[float, ...]
    """Noise of Table 7, increasing; the first is that of Table 1b."""
    clipping: tuple[ClippingSpec, ...]
    """Rows of Table 6."""
    clipping_epochs: int
    """Epochs of model clipping, noisy steps and fine-tuning together."""
    uncertified: ClippingSpec
    uncertified_epochs: int
    uncertified_looks: tuple[int, ...]
    """Noisy steps t of Figures 1a and 1b."""
    rewind: RewindSpec
    """Its smoothness and gradient bound are replaced by estimates at x0 on the retained images."""
    rewind_epsilons: tuple[float, ...]
    """Certified epsilon of Figure 1c, increasing."""
    num_calibration_runs: int = 50
    num_audit_runs: int = 10
    joint_calibrations: int = 50
    """Calibration runs per sign vector of the joint predictor, the paper's Gamma."""
    pairwise_calibrations: int = 50
    """The same with two groups, which have only two sign vectors."""
    certified_audit_runs: int = 100
    """L of Table 6."""
    figure_audit_runs: int = 500
    """L of the figures."""
    joint_groups: int = 6
    """m of the joint predictor."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Data split, starting point, order, sign vectors and noise; every table shows the spread over them."""

    cifar10_statistics: bool = False
    """Normalise with mean and deviation of CIFAR-10."""
    frozen_crops: bool = False
    """Crop and flip every training image at random, once."""
    max_rewind_seeds: int = 3
    """Figure 1c is over at most so many of the seeds."""
    max_second_size_seeds: int = 3
    """So is the second group size of Table 5."""

    @property
    def interleaved_names(self) -> list[str]:
        """Names of the interleaved methods, one for each q."""
        return [f"ida-{q}" for q in self.interleaving.descents]

    @property
    def rewind_seeds(self) -> tuple[int, ...]:
        """Seeds of Figure 1c."""
        return self.seeds[: self.max_rewind_seeds]

    def size_seeds(self, group_size: int) -> tuple[int, ...]:
        """Seeds of a group size of Table 5."""
        second = group_size in self.group_sizes[1:2]
        return self.seeds[: self.max_second_size_seeds] if second else self.seeds

    def num_groups(self, group_size: int) -> int:
        """m at a group size."""
        return self.num_candidates // group_size

    def guesses(self, records: int, group_size: int = 1) -> int | None:
        """r for the share of the candidates that the paper guesses with ``records`` of its 4,500.

        ``None`` unless that is an even number of groups, so that both signs get as many guesses.
        """
        exact, rest = divmod(records * self.num_candidates, PAPER.num_candidates * group_size)
        return None if rest or exact % 2 or not exact else exact


def _one_cycle(epochs: int, peak: float, batch_size: int = 128, weight_decay: float = 5e-4) -> SgdSpec:
    return SgdSpec(epochs, peak, batch_size=batch_size, schedule="one-cycle", weight_decay=weight_decay)


def _constant(epochs: int, rate: float, batch_size: int = 128, weight_decay: float = 0.0) -> SgdSpec:
    return SgdSpec(epochs, rate, batch_size=batch_size, schedule="constant", weight_decay=weight_decay)


_PAPER_STEPS = 50 * 317
_PAPER_NOISE = {"weight_decay": 5e-4, "batch_size": 128, "max_noisy_updates": _PAPER_STEPS}

PAPER = Preset(
    name="paper",
    image_size=None,
    num_classes=None,
    num_train=45_000,
    num_test=None,
    num_candidates=4_500,
    group_sizes=(1, 10, 100, 500),
    widths=(64, 128),
    training=_one_cycle(400, 1e-3),
    hessian_training=SgdSpec(400, 0.1, batch_size=128, schedule="cosine", weight_decay=5e-4),
    finetune=_one_cycle(50, 0.1),
    ascent=_constant(2, 1e-3),
    interleaving=Interleaving(_constant(10, 1e-3, weight_decay=5e-4)),
    hessian=HessianSpec(num_recursions=10, depth=1000, scale=1000.0, batch_size=10, sigma=0.0),
    hessian_sigmas=(1e-3, 5e-3, 1e-2),
    clipping=(
        ClippingSpec(epsilon=1.0, radius=0.2, sigma=0.1, **_PAPER_NOISE),
        ClippingSpec(epsilon=10.0, radius=0.1, sigma=0.02, **_PAPER_NOISE),
        ClippingSpec(epsilon=1e5, radius=0.225, sigma=1e-3, **_PAPER_NOISE),
    ),
    clipping_epochs=50,
    uncertified=ClippingSpec(radius=5.0, sigma=1e-4, **_PAPER_NOISE),
    uncertified_epochs=10,
    uncertified_looks=(1, 2, 5, 10, 20, 50, 100, 200, 317, 634),
    rewind=RewindSpec(num_steps=40, num_rewound=5, learning_rate=0.01),
    rewind_epsilons=(2.0, 5.0, 10.0, 20.0, 50.0, 100.0),
)

_CPU_NOISE = {"learning_rate": 1e-2, "batch_size": 32, "max_noisy_updates": 40}

CPU = Preset(
    name="cpu",
    image_size=8,
    num_classes=20,
    num_train=1_400,
    num_test=200,
    num_candidates=900,
    group_sizes=(1, 2, 20, 100),
    widths=(8, 16),
    training=_one_cycle(40, 0.4, 32),
    hessian_training=None,
    finetune=_one_cycle(10, 0.3, 32),
    ascent=_constant(2, 0.005, 32),
    interleaving=Interleaving(_constant(2, 0.05, 32, weight_decay=5e-4)),
    hessian=HessianSpec(
        num_recursions=1, depth=60, scale=50.0, batch_size=32, sigma=0.0, num_eigenvalue_updates=10
    ),
    hessian_sigmas=(1e-3, 5e-3, 1e-2, 3e-2, 1e-1),
    clipping=(
        ClippingSpec(epsilon=1.0, radius=0.2, sigma=0.1, **_CPU_NOISE),
        ClippingSpec(epsilon=10.0, radius=0.1, sigma=0.0325, **_CPU_NOISE),
        ClippingSpec(epsilon=1e5, radius=0.225, sigma=0.00101, **_CPU_NOISE),
    ),
    clipping_epochs=8,
    uncertified=ClippingSpec(radius=5.0, sigma=1e-2, **_CPU_NOISE),
    uncertified_epochs=4,
    uncertified_looks=(1, 2, 5, 10, 20, 40),
    rewind=RewindSpec(num_steps=40, num_rewound=5, learning_rate=0.01),
    rewind_epsilons=(2.0, 10.0, 100.0, 1e3, 1e4, 1e6, 1e8),
    joint_calibrations=4,
    pairwise_calibrations=20,
    certified_audit_runs=60,
    figure_audit_runs=60,
    seeds=(1, 2, 3),
    max_rewind_seeds=2,
    max_second_size_seeds=1,
)

SMOKE = replace(
    CPU,
    name="smoke",
    num_classes=4,
    num_train=60,
    num_test=16,
    num_candidates=36,
    group_sizes=(1, 4),
    widths=None,
    training=_one_cycle(2, 0.3, 32),
    finetune=_one_cycle(2, 0.1, 32),
    ascent=_constant(1, 1e-2, 32),
    interleaving=Interleaving(_constant(1, 1e-2, 32), descents=(1,)),
    hessian=HessianSpec(
        num_recursions=1, depth=3, scale=50.0, batch_size=8, sigma=0.0, num_eigenvalue_updates=0
    ),
    hessian_sigmas=(1e-3, 1e-1),
    clipping=(ClippingSpec(epsilon=1e3, radius=0.2, sigma=0.1, batch_size=32, max_noisy_updates=3),),
    clipping_epochs=4,
    uncertified=ClippingSpec(radius=5.0, sigma=1e-4, batch_size=32),
    uncertified_epochs=1,
    uncertified_looks=(1,),
    rewind=RewindSpec(num_steps=3, num_rewound=1, learning_rate=0.01),
    rewind_epsilons=(10.0, 100.0),
    num_calibration_runs=6,
    num_audit_runs=3,
    joint_calibrations=2,
    pairwise_calibrations=2,
    certified_audit_runs=6,
    figure_audit_runs=6,
    seeds=(0, 1),
)

PRESETS = {preset.name: preset for preset in (PAPER, CPU, SMOKE)}

REFERENCE: dict[str, Callable[[Preset], Preset]] = {
    "peak-rate": lambda p: replace(p, training=replace(p.training, learning_rate=0.06)),
    "noisy-decay": lambda p: replace(
        p,
        clipping=tuple(replace(one, weight_decay=0.0) for one in p.clipping),
        uncertified=replace(p.uncertified, weight_decay=0.0),
    ),
    "noisy-epochs": lambda p: replace(p, uncertified_epochs=p.uncertified_epochs - 1),
    "hessian-damping": lambda p: replace(p, hessian=replace(p.hessian, damping=p.hessian.damping + 0.01)),
    "rewind-delta": lambda p: replace(p, rewind=replace(p.rewind, delta=1e-3)),
    "statistics": lambda p: replace(p, cifar10_statistics=True),
    "frozen-crops": lambda p: replace(p, frozen_crops=True),
}
"""Where the reference code deviates from the printed hyper-parameters, by name.

peak-rate
    Training peaks at 0.06, not 0.001.
noisy-decay
    No weight decay in the noisy phase of model clipping.
noisy-epochs
    Nine noisy epochs of the uncertified variant, not ten.
hessian-damping
    0.01 more damping in LiSSA.
rewind-delta
    Delta 0.001 of rewind-to-delete, which the paper does not state.
statistics
    Images normalised with mean and deviation of CIFAR-10.
frozen-crops
    Every training image cropped and flipped at random once, the same in all epochs and runs.

What it does differently by mistake is not offered: one noise vector at all steps, forget sets of all candidates (chosen
and not), an order that depends on the sign vector, and one cached noise draw that counts many times. Nor are: the last
batch of an epoch dropped, weight decay in the ascent on the forget set (which pushes weights away from 0), a projection
on norm 20 and the best validation checkpoint in the training before the Hessian-based method, and constants of
rewind-to-delete measured at the unlearned model of each run.
"""


MAIN_RECORDS = 3000
"""Records that the paper guesses in Tables 1b and 7."""


def make_preset(name: str, overrides: tuple[str, ...] = (), seeds: tuple[int, ...] | None = None) -> Preset:
    """A preset by name, with some of the reference code's deviations."""
    check_choice("preset", name, tuple(PRESETS))
    preset = PRESETS[name]
    for override in overrides:
        check_choice("override", override, tuple(REFERENCE))
        preset = REFERENCE[override](preset)
    if seeds is None:
        return preset
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(f"seeds must be one or more different numbers, got {list(seeds)}")
    return replace(preset, seeds=seeds)
