"""Model clipping: noisy fine-tuning on the retain set whose parameters are projected on a small ball at every step.

Koloskova, Allouah, Jha, Guerraoui and Koyejo (2025), "Certified unlearning for neural networks"; Appendix G.1 of the
paper. Any loss, any training. The number of noisy steps that a certificate needs is counted in
`jaxaudit.unlearn.accountant`.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import jax
import optax
from jaxtyping import Array, Key

from jaxaudit.checks import check_integer, check_not_negative, check_open_delta, check_positive
from jaxaudit.train import Info, LossFn, Params, num_batches
from jaxaudit.unlearn.accountant import (
    ModelClipping,
    NoisySteps,
    epsilon_after,
    noisy_steps,
)
from jaxaudit.unlearn.base import Batch, Certificate, Recipe, Stages, Trained, Unlearner, then
from jaxaudit.unlearn.vectors import add_gaussian_noise, project


@dataclass(frozen=True)
class ClippingSpec:
    """Settings of model clipping.

    The default is the first row of the paper's Table 6: epsilon 1 at delta 1e-5 after 40 noisy steps. They leave
    nothing of the trained model but noise of deviation 0.1 in every weight, which happens to be close to a usual
    initialisation, so that the fine-tuning that follows finds an accurate model again: an MLP on digits of accuracy
    0.98 comes back to 0.93 after 10 epochs at rate 0.1 and to 0.97 after 30.

    Raises
    ------
    InputError
        If a value is outside its range.

    Examples
    --------
    >>> ClippingSpec().steps.summary
    '40 steps'
    """

    epsilon: float = 1.0
    """Claimed unlearning parameter, in nats; positive."""
    delta: float = 1e-5
    """Claimed delta, in (0, 1)."""
    radius: float = 0.2
    """C2, radius of the ball that every noisy step projects on; positive, in units of the parameters."""
    sigma: float = 0.1
    """Standard deviation of the noise of every noisy step; positive, in units of the parameters."""
    learning_rate: float = 1e-3
    """Step size gamma of the noisy steps, constant; not negative."""
    weight_decay: float = 0.0
    """lambda of the noisy steps; not negative."""
    initial_radius: float = 30.0
    """C0, radius of the ball that the trained model is projected on; positive."""
    initial_sigma: float = 0.0
    """Standard deviation sigma0 of the noise before the first step; not negative."""
    max_noisy_updates: int = 2000
    """Budget: if the certificate needs more noisy steps, so many are taken and nothing is certified."""
    num_noisy_updates: int | None = None
    """Noisy steps; ``None``: as many as the certificate needs."""
    batch_size: int = 64
    """Retain examples per noisy step."""

    def __post_init__(self) -> None:
        check_not_negative(learning_rate=self.learning_rate, weight_decay=self.weight_decay)
        check_integer("max_noisy_updates", self.max_noisy_updates, low=0)
        if self.num_noisy_updates is not None:
            check_integer("num_noisy_updates", self.num_noisy_updates, low=0)
        check_integer("batch_size", self.batch_size, low=1)
        check_positive(epsilon=self.epsilon)
        check_open_delta(self.delta)
        _ = self.constants  # checks the radii and the noise

    @property
    def constants(self) -> ModelClipping:
        """What the accountant needs."""
        return ModelClipping(self.radius, self.sigma, self.initial_radius, self.initial_sigma)

    @property
    def steps(self) -> NoisySteps:
        """How many noisy steps the certificate needs."""
        budget = self.max_noisy_updates if self.num_noisy_updates is None else self.num_noisy_updates
        return noisy_steps(self.epsilon, self.delta, self.constants, budget=budget)


class _Clipped(NamedTuple):
    params: Params


@lru_cache(maxsize=64)
def noisy_descent(
    loss_fn: LossFn,
    *,
    learning_rate: float,
    radius: float,
    sigma: float,
    num_updates: int,
    weight_decay: float = 0.0,
    initial_radius: float = 30.0,
    initial_sigma: float = 0.0,
    batch_size: int = 64,
) -> Unlearner:
    """The noisy phase of model clipping (equation 14 of the paper).

        x_0     = Pi_C0(trained) + xi_0
        x_{t+1} = Pi_C2(x_t - gamma (g_t + lambda x_t)) + xi_{t+1},    xi_t ~ N(0, sigma_t^2 I) independent

    where g_t is the gradient of the loss on the retain batch, and Pi projects all parameters, taken as one vector, on
    an L2 ball. (Equation 14 is printed with "+ lambda x_t" and without brackets: that sign would let the weights grow,
    and a projection of x_t alone would bound nothing.) Never looks at forget data. The noise is fresh at every step;
    the reference code adds one and the same vector at every step of a run, to which the theorem does not apply.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``.
    learning_rate
        gamma, constant; not negative.
    radius, sigma
        C2, positive, and the deviation of the noise of each step, not negative; in units of the parameters.
    num_updates, batch_size
        Number of noisy steps, and retain examples in each.
    weight_decay
        lambda, not negative.
    initial_radius, initial_sigma
        C0, positive, and sigma0, not negative. By default a model of norm up to 30 starts as it is.

    Raises
    ------
    InputError
        If a value is outside its range.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from jaxaudit.data import Examples
    >>> loss = lambda params, examples: jnp.mean((params - examples.x) ** 2) / 2
    >>> one = lambda value: Examples(jnp.full(1, value), jnp.zeros(1, int), jnp.ones(1))
    >>> method = noisy_descent(loss, learning_rate=0.5, radius=2.0, sigma=0.0, num_updates=1)
    >>> state = method.init(jax.random.key(0), Trained(jnp.zeros(()), jnp.zeros(())))
    >>> batch = Batch(retain=one(8.0), forget=one(9.0))
    >>> float(method.update(jax.random.key(1), state, batch)[0].params)  # 4.0, projected on [-2, 2]
    2.0
    """
    check_integer("num_updates", num_updates, low=0)
    check_integer("batch_size", batch_size, low=1)
    check_positive(radius=radius, initial_radius=initial_radius)
    check_not_negative(
        learning_rate=learning_rate, weight_decay=weight_decay, sigma=sigma, initial_sigma=initial_sigma
    )

    def init(key: Key[Array, ""], trained: Trained) -> _Clipped:
        params = project(trained.params, initial_radius)
        return _Clipped(add_gaussian_noise(key, params, initial_sigma) if initial_sigma else params)

    def update(key: Key[Array, ""], state: _Clipped, batch: Batch) -> tuple[_Clipped, Info]:
        loss, gradient = jax.value_and_grad(loss_fn)(state.params, batch.retain)
        moved = jax.tree.map(lambda x, g: x - learning_rate * (g + weight_decay * x), state.params, gradient)
        info = {"loss": loss, "gradient_norm": optax.tree.norm(gradient), "norm": optax.tree.norm(moved)}
        return _Clipped(add_gaussian_noise(key, project(moved, radius), sigma)), info

    return Unlearner(init, update, num_updates, batch_size)


def model_clipping(
    loss_fn: LossFn, *, spec: ClippingSpec | None = None, finetune: Unlearner | Stages | None = None
) -> Recipe:
    """Model clipping with its certificate: noisy steps, then fine-tuning on the retain set without noise.

    The certificate says that the released model is (epsilon, delta)-indistinguishable from that of the same procedure
    started from any other model, for instance one trained on the retain set only. It needs

    * at least the accountant's number of noisy steps with these radii and this noise, drawn freshly at each step;
    * noisy steps that see the forget set only through the model they start from: the same retain examples in the same
      batches for both (here the order is fixed and the same for all runs), no statistic of the forget set in the loss;
    * fine-tuning that sees retain data only: it is post-processing *given the retain set*, with any optimiser.

    Nothing is assumed of the loss, of the training, of the step size or of the weight decay. Without starting noise C0
    does not enter either: the certificate then holds for any trained model, however large.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``, of the noisy steps.
    spec
        Settings; default: `ClippingSpec`.
    finetune
        Second phase, such as `jaxaudit.unlearn.retain_finetune`; it must not look at forget data. ``None``: none.

    Returns
    -------
    A `Recipe`. Where the noisy steps do not reach (epsilon, delta), its certificate says so and why.

    Examples
    --------
    >>> def loss_fn(params, examples):
    ...     return (params**2).sum()
    >>> recipe = model_clipping(loss_fn)
    >>> recipe.certificate.epsilon, recipe.certificate.delta, recipe.method.stages[0].num_updates
    (1.0, 1e-05, 40)
    >>> recipe = model_clipping(loss_fn, spec=ClippingSpec(epsilon=10, radius=0.1, sigma=0.02))
    >>> print(recipe.certificate.reason)
    (10, 1e-05) is not reachable in the budget of 2,000 steps: 48,004 are needed; 2,000 steps give (19.4, 1e-05)
    """
    spec = spec or ClippingSpec()
    steps = spec.steps
    num_updates = spec.num_noisy_updates
    if num_updates is None:
        num_updates = steps.num_steps if steps.reachable else steps.budget
    assert num_updates is not None
    noisy = noisy_descent(
        loss_fn,
        learning_rate=spec.learning_rate,
        radius=spec.radius,
        sigma=spec.sigma,
        num_updates=num_updates,
        weight_decay=spec.weight_decay,
        initial_radius=spec.initial_radius,
        initial_sigma=spec.initial_sigma,
        batch_size=spec.batch_size,
    )
    return Recipe(then(noisy, finetune) if finetune else then(noisy), _certificate(spec, num_updates))


def uncertified_clipping(
    loss_fn: LossFn,
    *,
    num_retain: int,
    finetune: Unlearner | Stages | None = None,
    spec: ClippingSpec | None = None,
    num_epochs: int = 10,
    record_at: tuple[int, ...] | None = None,
) -> Recipe:
    """The uncertified variant of the paper (Appendix G.1.3, Figure 1a): a large ball and little noise.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``, of the noisy steps.
    num_retain
        Retain examples, which give the length of an epoch.
    finetune
        Second phase, as in `model_clipping`.
    spec
        Settings; default: those of the paper, C2 = 5 and sigma = 1e-4. Its number of noisy steps is replaced.
    num_epochs
        Passes over the retain set with noise.
    record_at
        Updates after which the iterate is audited as if the method had stopped there; default: 1, 2, 5, 10, 20, 50, ...
        up to the last noisy one.

    Examples
    --------
    >>> def loss_fn(params, examples):
    ...     return (params**2).sum()
    >>> recipe = uncertified_clipping(loss_fn, num_retain=997, num_epochs=2)
    >>> recipe.certificate.certified, recipe.record_at
    (False, (1, 2, 5, 10, 20, 32))
    """
    check_integer("num_epochs", num_epochs, low=1)
    spec = spec or ClippingSpec(radius=5.0, sigma=1e-4)
    num_updates = num_epochs * num_batches(num_retain, spec.batch_size)
    spec = replace(spec, num_noisy_updates=num_updates)
    recipe = model_clipping(loss_fn, spec=spec, finetune=finetune)
    return recipe._replace(record_at=_looks(num_updates) if record_at is None else tuple(record_at))


def _looks(num_updates: int) -> tuple[int, ...]:
    """1, 2, 5, 10, 20, 50, ... up to a last one."""
    powers = range(len(str(num_updates)))
    looks = {factor * 10**power for power in powers for factor in (1, 2, 5)}
    return (*sorted(look for look in looks if look < num_updates), num_updates)


@lru_cache(maxsize=64)  # the inverse of the recursion takes a second for thousands of steps
def _certificate(spec: ClippingSpec, num_updates: int) -> Certificate:
    steps = spec.steps
    if steps.num_steps is not None and steps.num_steps <= num_updates:
        return Certificate(
            spec.epsilon,
            spec.delta,
            f"Koloskova et al. (2025), Theorem 4.2: {num_updates:,} noisy steps, {steps.num_steps:,} are needed; given "
            "the retain set and its batches, for any loss and any trained model",
        )
    claim = f"({spec.epsilon:g}, {spec.delta:g})"
    reached = epsilon_after(num_updates, spec.delta, spec.constants)
    given = "no noise" if reached is None else f"{num_updates:,} steps give ({reached:.3g}, {spec.delta:g})"
    return Certificate.none(f"{claim} is {steps.summary}; {given}")
