"""Fine-tuned models of an audit of edges: each is trained once and kept, whatever it was trained together with."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from jaxaudit.study.chunks import filled, in_chunks
from jaxaudit.study.edgemodels import EdgeModels
from jaxaudit.study.resultstore import ResultStore, params_from_arrays, params_to_arrays


@dataclass(frozen=True, eq=False)
class FineTuned:
    """Models before unlearning, made when they are asked for.

    Parameters
    ----------
    models
        How they are made.
    store
        Where they are kept, one entry each.
    """

    models: EdgeModels
    store: ResultStore

    def get(self, names: Sequence[str], members: Int[np.ndarray, "models members"], keys: Array) -> PyTree:
        """All parameters, with an axis of models; those that are missing are trained, a chunk at a time.

        Parameters
        ----------
        names
            Of the models, each once.
        members
            Numbers of the questions that each of them reads.
        keys
            One each, for dropout.
        """
        known = [self.store.get(_weights(name), keep=False) for name in names]
        missing = [place for place, found in enumerate(known) if found is None]
        for part in in_chunks(missing, self.models.study.chunk):
            self._train([names[place] for place in part], part, members, keys)
        found = [self.store.get(_weights(name), keep=False) for name in names]
        each = [params_from_arrays(one, self.models.shapes) for one in found if one is not None]
        return self.models.whole(jax.tree.map(lambda *leaves: np.stack(leaves), *each))

    def seconds(self, names: Sequence[str]) -> float:
        """Wall seconds of the training of some models, that have been made, together."""
        return sum(float(found["seconds"]) for name in names if (found := self.store.get(_seconds(name))))

    def _train(
        self,
        names: Sequence[str],
        places: Sequence[int],
        members: Int[np.ndarray, "models members"],
        keys: Array,
    ) -> None:
        began, own = time.perf_counter(), np.array(filled(places, self.models.study.chunk))
        trained = self.models.train(members[own], keys[jnp.asarray(own)], f"fine-tuning {', '.join(names)}")
        trained = jax.tree.map(np.asarray, trained)
        share = (time.perf_counter() - began) / len(names)
        for number, name in enumerate(names):
            one = jax.tree.map(lambda leaf, number=number: leaf[number], trained)
            # The weights last: whoever finds these finds the seconds, too.
            self.store.put(_seconds(name), {"seconds": np.asarray(share)})
            self.store.put(_weights(name), params_to_arrays(one), keep=False)


def _weights(name: str) -> str:
    return f"fine-tuned/{name}"


def _seconds(name: str) -> str:
    return f"seconds/fine-tuned/{name}"
