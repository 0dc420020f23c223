import jax
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.keys import stream_key


def data(seed, stream):
    return np.asarray(jax.random.key_data(stream_key(seed, stream))).tolist()


def test_streams_and_seeds_are_all_different():
    keys = [data(seed, stream) for seed in (0, 1, 2) for stream in ("init", "order", "sign", "noise")]
    assert len({tuple(key) for key in keys}) == 12


@pytest.mark.parametrize("stream", ["init", "order", "sign", "noise"])
def test_a_stream_is_a_typed_key_and_stable(stream):
    assert jax.dtypes.issubdtype(stream_key(5, stream).dtype, jax.dtypes.prng_key)
    assert data(5, stream) == data(5, stream)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5])
def test_seeds_that_would_alias_others_are_refused(seed):
    with pytest.raises(InputError, match="seed must be an integer between 0 and 4294967295, got"):
        stream_key(seed, "sign")
