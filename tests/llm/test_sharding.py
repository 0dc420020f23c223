import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from jax.sharding import PartitionSpec

from jaxaudit.errors import InputError
from jaxaudit.llm import DecoderSpec, LoraSpec, decoder, init_adapters
from jaxaudit.llm.sharding import adapter_partition, base_partition

ROOT = Path(__file__).parents[2]
SPECS = [
    DecoderSpec(
        12, width=8, num_heads=4, num_kv_heads=2, head_dim=4, hidden=12, tied_head=False, biased=("q", "o")
    ),
    DecoderSpec(11, width=8, num_heads=3, head_dim=4, hidden=12),
]


def sizes(shapes, partition, num_shards):
    """Sizes of what is cut, by path; every size comes out even."""
    found = {}
    leaves = jax.tree_util.tree_leaves_with_path(
        partition, is_leaf=lambda leaf: isinstance(leaf, PartitionSpec)
    )
    for path, spec in leaves:
        shape = shapes
        for entry in path:
            shape = shape[entry.key]
        assert len(spec) <= len(shape.shape)
        cut = [size for size, axis in zip(shape.shape, spec) if axis == "model"]
        assert all(size % num_shards == 0 for size in cut)
        found[".".join(entry.key for entry in path)] = cut
    return found


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("num_shards", [1, 2, 4])
def test_partitions_have_the_structure_of_the_parameters(spec, num_shards):
    lora = LoraSpec(rank=2)
    shapes = jax.eval_shape(decoder(spec).init_fn, jax.random.key(0))
    found = sizes(shapes, base_partition(spec, num_shards), num_shards)
    assert len(found) == len(jax.tree.leaves(shapes))
    runs = jax.vmap(lambda key: init_adapters(key, spec, lora))
    shapes = jax.eval_shape(runs, jax.random.split(jax.random.key(0), 3))
    found = sizes(shapes, adapter_partition(spec, lora, num_shards), num_shards)
    assert len(found) == len(jax.tree.leaves(shapes))


def test_what_is_cut():
    shapes = jax.eval_shape(decoder(SPECS[0]).init_fn, jax.random.key(0))
    two, four = (sizes(shapes, base_partition(SPECS[0], count), count) for count in (2, 4))
    assert {name for name, cut in two.items() if not cut} == {
        "layers.attention_norm.weight",
        "layers.mlp_norm.weight",
        "layers.o.bias",  # added once, to the sum
        "norm.weight",
    }
    # Two heads of keys and values do not come out even on four devices, though their 8 columns would.
    assert {name for name in two if two[name] and not four[name]} == {"layers.k.kernel", "layers.v.kernel"}


def test_bad_arguments():
    with pytest.raises(InputError, match="num_shards must be an integer of at least 1, got 0"):
        base_partition(SPECS[0], 0)


@pytest.mark.slow
def test_four_devices_give_what_one_gives():
    flags = "--xla_force_host_platform_device_count=4"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.llm.many_devices"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
