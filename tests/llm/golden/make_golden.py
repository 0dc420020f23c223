"""Logits of small random models of every family by PyTorch and ``transformers``, and what their files look like.

    pip install torch transformers
    python -m tests.llm.golden.make_golden         # writes tests/llm/golden/families.json
    python -m tests.llm.golden.make_golden FOLDER  # prints logits of the model in FOLDER for fixed tokens, as JSON

Values of parameters are drawn from their names, so that only names and shapes need to be kept.
"""

import json
import sys
import zlib
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("families.json")
SIZES = {
    "vocab_size": 19,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
CASES = {
    "llama2": ("Llama", {}),
    "llama3": ("Llama", {"num_key_value_heads": 2, "head_dim": 16, "rope_parameters": LLAMA3}),
    "llama with biases": (
        "Llama",
        {
            "attention_bias": True,
            "mlp_bias": True,
            "rope_parameters": {"rope_type": "linear", "rope_theta": 100.0, "factor": 3.0},
        },
    ),
    "mistral": ("Mistral", {"num_key_value_heads": 2, "sliding_window": 4, "head_dim": 8}),
    "gemma": ("Gemma", {"num_key_value_heads": 1, "head_dim": 16}),
}
IDS = [1, 7, 3, 18, 2, 11, 11, 5, 0, 9, 14, 6]


def drawn(name, shape):
    """Values of a tensor, far from neutral; the same on every machine."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    scale = 0.5 if len(shape) == 1 else 1.5 / np.sqrt(shape[-1])
    offset = 1.0 if name.endswith("norm.weight") else 0.0
    return (offset + scale * rng.standard_normal(shape)).astype(np.float32)


def build(family, changes):
    import transformers

    config = getattr(transformers, f"{family}Config")(**SIZES | changes)
    config._attn_implementation = "eager"
    return getattr(transformers, f"{family}ForCausalLM")(config).eval()


def logits(model, ids):
    import torch

    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float().numpy()


def make(case):
    import torch

    model = build(*CASES[case])
    state = model.state_dict()
    tied = model.config.tie_word_embeddings
    shapes = {
        name: list(leaf.shape) for name, leaf in state.items() if not (tied and name == "lm_head.weight")
    }
    model.load_state_dict(
        {name: torch.tensor(drawn(name, shape)) for name, shape in shapes.items()}, strict=False
    )
    model.tie_weights()
    return {
        "config": json.loads(model.config.to_json_string(use_diff=False)),
        "shapes": shapes,
        "logits": [[float(f"{value:.7g}") for value in row] for row in logits(model, IDS).tolist()],
    }


def main():
    if len(sys.argv) == 2:
        import transformers

        model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype="float32")
        print(json.dumps(logits(model.eval(), IDS).tolist()))
        return
    FILE.write_text(json.dumps({case: make(case) for case in CASES}, indent=0) + "\n")


if __name__ == "__main__":
    main()
