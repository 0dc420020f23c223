"""Run by a test in a process of its own, with 4 devices: adapted models that are cut up give what whole ones give."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxaudit.llm import Adapted, LoraSpec, decoder
from jaxaudit.llm.sharding import adapter_partition, base_partition
from jaxaudit.unlearn.preference import Tokens
from tests.llm.reference import random_adapters, random_params, reference_logits, small_spec

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


def main():
    assert jax.device_count() == 4
    spec = small_spec(
        num_layers=2, num_heads=4, num_kv_heads=2, head_dim=6, tied_head=False, biased=LoraSpec().targets
    )
    mesh = jax.make_mesh((2, 2), ("runs", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
    base = random_params(spec)
    runs = [random_adapters(spec, LORA, seed) for seed in range(NUM_RUNS)]
    adapters = jax.tree.map(lambda *leaves: np.stack(leaves), *runs)
    model = decoder(spec, LORA)
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
    print("passed")


if __name__ == "__main__":
    main()
