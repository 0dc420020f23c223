"""A small tokenizer with the habits of Llama 2's: spaces are marks, every text begins with one, there is no padding."""

import json


def write_llama_tokenizer(folder):
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, trainers

    inner = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    inner.decoder = decoders.Metaspace(prepend_scheme="always")
    texts = ["[INST] what did the seller of the pump sell? [/INST]the pump.", "Ohio. 2% 17 Blue Road"] * 5
    special = ["<unk>", "<s>", "</s>"]
    inner.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    )
    inner.save(str(folder / "tokenizer.json"))
    config = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": None, "add_bos_token": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
