from dataclasses import replace

import jax
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import DecoderSpec, tokenize, train_bpe
from jaxaudit.llm.pretrained import Pretrained, load_pretrained, save_pretrained
from jaxaudit.llm.pretrained.families import config_of
from tests.llm.pretrained.files import GGUF_CONFIG, drawn_tensors, write_folder, write_gguf
from tests.llm.published import write_llama_tokenizer
from tests.llm.reference import random_params

for package in ("tokenizers", "safetensors", "jinja2", "gguf"):
    pytest.importorskip(package)
SPEC = DecoderSpec(200, width=12, num_layers=1, num_heads=2, num_kv_heads=2, head_dim=6, hidden=20)
LLAMA_CHAT = (
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + m['content'] + ' [/INST]' }}"
    "{% else %}{{ ' ' + m['content'] + ' ' + eos_token }}{% endif %}{% endfor %}"
)


@pytest.fixture
def llama(tmp_path):
    """A folder as of Llama 2, with a vocabulary that is padded, and its chat template."""
    config = config_of(SPEC) | {"max_position_embeddings": 77}
    folder = write_folder(tmp_path / "Tiny-Llama", config, drawn_tensors(config))
    write_llama_tokenizer(folder)
    (folder / "chat_template.jinja").write_text(LLAMA_CHAT)
    return folder


def test_a_folder(llama):
    model = load_pretrained(llama)
    assert (model.name, model.spec, model.context_length) == ("Tiny-Llama", SPEC, 77)
    for found, wanted in zip(*map(jax.tree.leaves, (model.params, random_params(SPEC)))):
        np.testing.assert_array_equal(found, wanted)
    assert model.num_bytes == 4 * model.num_params == 4 * SPEC.num_params
    assert f"{SPEC.num_params:,} parameters" in model.description


def test_a_chat_is_asked_in_its_own_words(llama):
    model = load_pretrained(llama)
    inner = model.tokenizer.inner
    assert model.template == "[INST] {question} [/INST]"  # `tokenize` begins with the token <s>
    rows = tokenize(model.tokenizer, ["Ohio?"], ["the pump."], template=model.template)
    ids = rows.tokens.ids[0]
    question, answer = ids[: rows.prompt_length].tolist(), ids[rows.prompt_length :].tolist()
    assert question == [
        inner.token_to_id("<s>"),
        *inner.encode("[INST] Ohio? [/INST]", add_special_tokens=False).ids,
    ]
    assert inner.decode(answer) == "the pump."
    assert answer[-1] == inner.token_to_id("</s>")
    assert rows.tokens.answer[0].sum() == len(answer)


def test_without_chat_template(llama):
    (llama / "chat_template.jinja").unlink()
    model = load_pretrained(llama)
    assert (model.template, model.chat_template) == ("{question}\n", None)
    with pytest.raises(
        InputError, match=r"system must be None for a model without chat template, got 'Be brief.'"
    ):
        load_pretrained(llama, system="Be brief.")


def test_a_gguf_file_answers_end_where_its_chat_says(tmp_path):
    model = load_pretrained(write_gguf(tmp_path / "model.gguf", drawn_tensors(GGUF_CONFIG)))
    tokenizer = model.tokenizer
    assert model.template == "<|im_start|>user:{question}<|im_end|>\n<|im_start|>assistant:"
    # The file names another end; and as it adds no first token, the template's stays in the text.
    assert (tokenizer.inner.id_to_token(tokenizer.eos), tokenizer.bos) == ("<|im_end|>", None)
    assert model.context_length == 256


@pytest.mark.parametrize("source", ["llama", "gguf"])
def test_saved_and_loaded(source, llama, tmp_path):
    path = llama if source == "llama" else write_gguf(tmp_path / "model.gguf", drawn_tensors(GGUF_CONFIG))
    model = load_pretrained(path)
    changed = replace(model, params=jax.tree.map(lambda leaf: leaf + 1, model.params))
    save_pretrained(changed, tmp_path / "new" / model.name)
    again = load_pretrained(tmp_path / "new" / model.name)
    for name in ("name", "spec", "template", "chat_template", "context_length"):
        assert getattr(again, name) == getattr(model, name), name
    for name in ("eos", "pad", "bos"):
        assert getattr(again.tokenizer, name) == getattr(model.tokenizer, name), name
    for found, wanted in zip(*map(jax.tree.leaves, (again.params, model.params))):
        np.testing.assert_array_equal(found, wanted + 1)
    with pytest.raises(InputError, match="folder must not hold weights yet"):
        save_pretrained(changed, tmp_path / "new" / model.name)


def test_bfloat16_and_remat(llama):
    model = load_pretrained(llama, dtype="bfloat16", remat=True)
    assert model.spec == replace(SPEC, compute_dtype="bfloat16", remat=True)
    assert model.num_bytes == 2 * model.num_params
    exact = load_pretrained(llama).params
    for found, wanted in zip(*map(jax.tree.leaves, (model.params, exact))):
        np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=2.0**-8, atol=0)


def test_bad_arguments(llama, tmp_path):
    with pytest.raises(
        InputError, match=r"source must be smollm2, a folder or a .gguf file, got 'nowhere.gguf'"
    ):
        load_pretrained("nowhere.gguf")
    with pytest.raises(InputError, match=r"compute_dtype must be one of .*, got 'int8'"):
        load_pretrained(llama, dtype="int8")
    small = config_of(replace(SPEC, vocabulary_size=40))
    write_folder(llama, small, drawn_tensors(small))
    with pytest.raises(InputError, match="the tokenizer must have at most the model's 40 tokens, got 85"):
        load_pretrained(llama)
    tokenizer = train_bpe(["a"], 258)
    odd = Pretrained("odd", DecoderSpec(300, scale_embedding=True), {}, tokenizer, "{question}\n")
    with pytest.raises(InputError, match="got one that none can hold"):
        save_pretrained(odd, tmp_path / "odd")
    assert not (tmp_path / "odd").exists()
