"""Settings of the methods that are audited by name; the defaults suit the main job."""

from dataclasses import dataclass, field

from jaxaudit.train import SgdSpec
from jaxaudit.unlearn.clipping import ClippingSpec
from jaxaudit.unlearn.dampening import DampeningSpec
from jaxaudit.unlearn.descent_to_delete import DescentToDeleteSpec
from jaxaudit.unlearn.gradient_difference import GradientDifferenceSpec
from jaxaudit.unlearn.hessian import HessianSpec
from jaxaudit.unlearn.interleaved import InterleavedSpec
from jaxaudit.unlearn.langevin import LangevinSpec
from jaxaudit.unlearn.newton import NewtonSpec
from jaxaudit.unlearn.output_perturbation import OutputPerturbationSpec
from jaxaudit.unlearn.random_labels import RandomLabelsSpec
from jaxaudit.unlearn.rewind import RewindSpec
from jaxaudit.unlearn.scrub import ScrubSpec


@dataclass(frozen=True)
class UnlearningSpec:
    """Settings of the methods that are audited by name."""

    finetune: SgdSpec = field(default_factory=lambda: SgdSpec(epochs=10, learning_rate=0.1))
    """Fine-tuning on the retain set, alone or as the last phase of other methods."""
    ascent: SgdSpec = field(
        default_factory=lambda: SgdSpec(epochs=2, learning_rate=0.02, schedule="constant")
    )
    """Ascent on the run's own forget set."""
    interleaved: InterleavedSpec = field(default_factory=InterleavedSpec)
    """Interleaved descent-ascent, before fine-tuning."""
    difference: GradientDifferenceSpec = field(default_factory=GradientDifferenceSpec)
    """Gradient difference, NegGrad+."""
    scrub: ScrubSpec = field(default_factory=ScrubSpec)
    """SCRUB."""
    random_labels: RandomLabelsSpec = field(default_factory=RandomLabelsSpec)
    """Random-label fine-tuning."""
    hessian: HessianSpec = field(default_factory=HessianSpec)
    """Hessian-based unlearning (LiSSA)."""
    dampening: DampeningSpec = field(default_factory=DampeningSpec)
    """Selective synaptic dampening."""
    clipping: ClippingSpec = field(default_factory=ClippingSpec)
    """Model clipping with a certificate."""
    clipping_finetune: SgdSpec = field(default_factory=lambda: SgdSpec(epochs=30, learning_rate=0.1))
    """Fine-tuning after model clipping, which leaves little of the trained model."""
    uncertified_clipping: ClippingSpec = field(default_factory=lambda: ClippingSpec(radius=5.0, sigma=1e-4))
    """Model clipping in a large ball with little noise."""
    uncertified_epochs: int = 10
    """Noisy passes over the retain set of the uncertified variant."""
    rewind: RewindSpec = field(default_factory=RewindSpec)
    """Rewind-to-delete, and the full-batch training that it needs."""
    l2: float = 0.1
    """Strong convexity of the loss of the convex suite: a ridge penalty."""
    newton: NewtonSpec = field(default_factory=lambda: NewtonSpec(bound="sharp"))
    """Perturbed Newton."""
    output_perturbation: OutputPerturbationSpec = field(
        default_factory=lambda: OutputPerturbationSpec(epsilon=10.0)
    )
    """Output perturbation."""
    descent_to_delete: DescentToDeleteSpec = field(
        default_factory=lambda: DescentToDeleteSpec(unlearning_steps=10)
    )
    """Descent-to-Delete."""
    langevin: LangevinSpec = field(
        default_factory=lambda: LangevinSpec(training_steps=100, unlearning_steps=10)
    )
    """Langevin unlearning, and the noisy training that it needs."""
