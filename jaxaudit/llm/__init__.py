"""What language models need beyond the other stages: tokens, a decoder, adapters, fine-tuning, generation.

The order of use::

    published = load_pretrained("smollm2")                       # spec, params, tokenizer, template; or without one:
    tokenizer = word_tokenizer(texts, groups=edges)              # or train_bpe, or load_tokenizer
    records = tokenize(tokenizer, questions, answers)            # .examples, .prompts, .prompt_length
    model = decoder(DecoderSpec(tokenizer.vocabulary_size))      # .init_fn, .logits_fn
    tokens = token_model(model, records.prompt_length)           # for losses, scores and unlearners
    loop = fine_tuning_loop(tokens, AdamWSpec(...), num_members) # for the run axis
    generate_texts(model, params, tokenizer, records.prompts, num_tokens=records.answer_length)
"""

from jaxaudit.llm.decoder import Adapted, Decoder, Network, decoder
from jaxaudit.llm.finetuning import AdamWSpec, LoraShared, fine_tuning_loop, lora_tuning_loop
from jaxaudit.llm.generation import Generation, Prompts, generate, generate_answers, generate_texts
from jaxaudit.llm.lora import (
    LoraSpec,
    adapter_norm,
    init_adapters,
    merge,
    unmerge,
    untouched_runs,
)
from jaxaudit.llm.packing import packed_size
from jaxaudit.llm.pretrained import Pretrained, load_pretrained, save_pretrained
from jaxaudit.llm.sharding import adapter_partition, base_partition
from jaxaudit.llm.spec import PRESETS, DecoderSpec, RopeScaling
from jaxaudit.llm.subwords import SubwordTokenizer, load_tokenizer, train_bpe
from jaxaudit.llm.tokenizing import (
    TokenizedRecords,
    encode_pair,
    tokenize,
    tokenize_alternatives,
)
from jaxaudit.llm.tokenmodel import lora_model, token_model
from jaxaudit.llm.unlearning import adapters_only, lora_unlearner, with_adapter_norm
from jaxaudit.llm.words import Tokenizer, WordTokenizer, answer_texts, word_tokenizer

__all__ = [
    "PRESETS",
    "AdamWSpec",
    "Adapted",
    "Decoder",
    "DecoderSpec",
    "Generation",
    "LoraShared",
    "LoraSpec",
    "Network",
    "Pretrained",
    "Prompts",
    "RopeScaling",
    "SubwordTokenizer",
    "TokenizedRecords",
    "Tokenizer",
    "WordTokenizer",
    "adapter_norm",
    "adapter_partition",
    "adapters_only",
    "answer_texts",
    "base_partition",
    "decoder",
    "encode_pair",
    "fine_tuning_loop",
    "generate",
    "generate_answers",
    "generate_texts",
    "init_adapters",
    "load_pretrained",
    "load_tokenizer",
    "lora_model",
    "lora_tuning_loop",
    "lora_unlearner",
    "merge",
    "packed_size",
    "save_pretrained",
    "token_model",
    "tokenize",
    "tokenize_alternatives",
    "train_bpe",
    "unmerge",
    "untouched_runs",
    "with_adapter_norm",
    "word_tokenizer",
]
