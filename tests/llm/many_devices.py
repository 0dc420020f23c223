"""Run by a test in a process of its own, with 4 devices: adapted models that are cut up give what whole ones give."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxaudit.llm import AdamWSpec, Adapted, LoraShared, LoraSpec, decoder, lora_tuning_loop
from jaxaudit.llm.sharding import adapter_partition, base_partition
from jaxaudit.train import TrainingRun
from jaxaudit.unlearn.preference import Tokens
from tests.llm.reference import random_adapters, random_params, reference_logits, small_spec
from tests.llm.toy import toy_examples

NUM_RUNS = 2
LORA = LoraSpec(rank=2, alpha=3.0)
IDS = np.random.default_rng(3).integers(0, 11, (2, 7))


def placed(mesh, tree, partition):
    def place(spec, leaf):
        return jax.device_put(leaf, NamedSharding(mesh, spec))

    return jax.tree.map(place, partition, tree, is_leaf=lambda leaf: isinstance(leaf, PartitionSpec))


def bytes_per_device(tree):
    return sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(tree))


def bytes_of(tree):
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


def model_and_params():
    """A decoder all of whose matrices come out even, its base, and the adapters of every run."""
    spec = small_spec(
        num_layers=2, num_heads=4, num_kv_heads=2, head_dim=6, tied_head=False, biased=LoraSpec().targets
    )
    return spec, random_params(spec), [random_adapters(spec, LORA, seed) for seed in range(NUM_RUNS)]


def stacked(runs):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *runs)


def check_logits(mesh):
    spec, base, runs = model_and_params()
    adapters, model = stacked(runs), decoder(spec, LORA)
    tokens = Tokens(jnp.asarray(IDS), jnp.zeros(IDS.shape), jnp.ones(IDS.shape))
    cut_base = placed(mesh, base, base_partition(spec, 2))
    cut_adapters = placed(mesh, adapters, adapter_partition(spec, LORA, 2))
    assert bytes_per_device(cut_base) <= 0.65 * bytes_of(base)  # 11 tokens do not come out even
    assert bytes_per_device(cut_adapters) < 0.5 * bytes_of(adapters)

    logits = jax.jit(
        lambda base, adapters: jax.vmap(lambda own: model.logits_fn(Adapted(base, own), tokens))(adapters)
    )(cut_base, cut_adapters)
    for run, own in enumerate(runs):
        expected = [reference_logits(spec, base, row, own, LORA) for row in IDS]
        np.testing.assert_allclose(logits[run], expected, rtol=0, atol=1e-5)


def check_training(mesh):
    """Some updates of all runs, with a cut base and cut adapters, against whole ones on one device."""
    spec, base, runs = model_and_params()
    examples, prompt_length = toy_examples(count=6)
    pool = examples._replace(x=examples.x.truth)
    loop = lora_tuning_loop(
        decoder(spec, LORA), AdamWSpec(2, 0.01, batch_size=2, warmup_share=0.0), 4, prompt_length
    )
    own = TrainingRun(jnp.array([[0, 1, 2, 3], [2, 4, 5, 0]]), jax.random.split(jax.random.key(2), NUM_RUNS))

    def train(adapters, base):
        def start(run, adapters):
            return loop.init(run, LoraShared(pool, adapters, base))

        def update(step, state, run):
            return loop.body(step, state, run, LoraShared(pool, state.params, base))

        states = jax.vmap(start)(own, adapters)
        return jax.lax.fori_loop(
            0, loop.num_steps, lambda step, now: jax.vmap(update, (None, 0, 0))(step, now, own), states
        )

    adapters = stacked(runs)
    cut_adapters = placed(mesh, adapters, adapter_partition(spec, LORA, 2))
    cut = jax.jit(train)(cut_adapters, placed(mesh, base, base_partition(spec, 2)))
    whole = jax.jit(train)(adapters, base)
    # Weights and the two moments of Adam stay where the adapters lie: no device ever holds all of them.
    assert bytes_per_device(cut) < 0.5 * bytes_of(whole)
    moved = jax.tree.map(lambda now, before: np.abs(now - before).max(), whole.params, adapters)
    assert min(jax.tree.leaves(moved)) > 1e-3
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=0, atol=1e-5), cut.params, whole.params
    )


def main():
    assert jax.device_count() == 4
    mesh = jax.make_mesh((2, 2), ("runs", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
    check_logits(mesh)
    check_training(mesh)
    print("passed")


if __name__ == "__main__":
    main()
