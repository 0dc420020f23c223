"""The model that a study starts from: a pretrained decoder with its tokenizer; and a small one to be made here.

Whatever decoder `jaxaudit.llm` can hold fits in: its parameters, spec and tokenizer are all that a study asks for.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np

from jaxaudit.checks import check_choice, check_integer
from jaxaudit.data.pistol import (
    REFUSALS,
    ContractType,
    Entity,
    GroupedRecords,
    PistolData,
    Record,
    dataset_1,
    generate,
    make_graph,
    replace_entity,
)
from jaxaudit.errors import InputError
from jaxaudit.keys import stream_key
from jaxaudit.llm import (
    PRESETS,
    AdamWSpec,
    DecoderSpec,
    Tokenizer,
    WordTokenizer,
    decoder,
    fine_tuning_loop,
    load_pretrained,
    packed_size,
    token_model,
    tokenize,
    word_tokenizer,
)
from jaxaudit.progress import Reporter
from jaxaudit.runs import run_loops
from jaxaudit.store import fingerprint, hash_arrays
from jaxaudit.study.resultstore import ResultStore, params_from_arrays, params_to_arrays
from jaxaudit.study.settings import run_options
from jaxaudit.train import Params, TrainingRun, TrainingShared

_FORMAT = 1
"""Raised when the code changes what is pretrained."""
_TRIES = 100
_WORD_SHARE = 0.2
_KNOWN_SHARE = 0.8
"""Of the background's contracts: those whose questions are answered. The others' are refused."""


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A pretrained decoder.

    Parameters
    ----------
    name
        What a report calls it.
    spec
        Sizes and switches.
    params
        Of ``decoder(spec)``; the base from which fine-tuning starts.
    tokenizer
        Of its vocabulary.
    template
        Text of a prompt, with ``{question}``.
    description
        A sentence for the report.
    """

    name: str
    spec: DecoderSpec
    params: Params
    tokenizer: Tokenizer
    template: str = "{question}\n"
    description: str = ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the decoder; `study_fingerprint` knows the tokenizer by what it makes of the data."""
        arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(self.params)]
        return fingerprint([repr(self.spec), hash_arrays(arrays)])


def published_model(source: str | Path, *, remat: bool = False) -> LanguageModel:
    """A model that is really pretrained, from local files; see `jaxaudit.llm.load_pretrained`.

    SmolLM2 is asked with an empty system message: that of its template says nothing about the data and takes 16 of a
    question's 63 tokens.

    Parameters
    ----------
    source
        ``smollm2``, a folder in Hugging Face's layout, or a ``.gguf`` file.
    remat
        Whether layers are computed again in the backward pass, to save memory.

    Raises
    ------
    InputError
        A part that is missing, damaged or of another family: named.
    """
    is_smollm2 = source == "smollm2"
    found = load_pretrained(source, system="" if is_smollm2 else None, remat=remat)
    description = f"{found.description} {_NO_SYSTEM}" if is_smollm2 else found.description
    parts = (found.name, found.spec, found.params, found.tokenizer, found.template, description)
    return LanguageModel(*parts)


_NO_SYSTEM = (
    "Its system message is left empty; that of its chat template would add 16 tokens to every question."
)


class Background(NamedTuple):
    """What the small model knows before it meets the data."""

    answered: PistolData
    """Contracts between entities that the data do not have."""
    records: tuple[Record, ...]
    """Their questions, and questions about other unknown contracts that are answered by refusals."""


def make_background(
    data: GroupedRecords,
    *,
    seed: int,
    num_contracts: int = 30,
    known: Mapping[Entity, int] | None = None,
) -> Background:
    """Contracts of a random graph that shares no name and no address with the data, and refusals.

    Four fifths of the contracts are answered; questions about the others, whose entities occur nowhere else, are
    answered with "I don't know" in many wordings. Contract types are those of the data, in about their shares.

    Parameters
    ----------
    data
        What the model will be fine-tuned on; of data that are no contracts, those of Dataset 1 take the place here.
    seed
        Of the graph and of all values.
    num_contracts
        At least 5.
    known
        Entities that shall be met beforehand, each with the number of its contracts: the well-known names of Section 6
        of the paper.

    Raises
    ------
    InputError
        If an argument is out of range, no disjoint names are found, or there are known entities and no contract between
        companies.

    Examples
    --------
    >>> from jaxaudit.data.pistol import chain
    >>> background = make_background(generate(chain(3), seed=0), seed=0, num_contracts=5)
    >>> len(background.records), background.records[-1].answer in REFUSALS
    (100, True)
    """
    check_integer("num_contracts", num_contracts, low=5)
    known = known or {}
    like = data if isinstance(data, PistolData) else dataset_1()
    num_answered = round(_KNOWN_SHARE * num_contracts)
    taken = _texts(like) - {text for entity in known for text in (entity.name, entity.address)}
    graph = _background_graph(like, seed, num_answered, "p", list(known.values()))
    answered = _disjoint(graph, _types(like), seed + 1, taken)
    for number, entity in enumerate(known):
        answered = replace_entity(answered, f"k{number}", name=entity.name, address=entity.address)
    unknown_graph = _background_graph(like, seed + 1, num_contracts - num_answered, "u", [])
    unknown = _disjoint(unknown_graph, _types(like), seed + 1, taken | _texts(answered))
    refused = [
        Record(record.question, REFUSALS[number % len(REFUSALS)], record.edge)
        for number, record in enumerate(unknown.records)
    ]
    return Background(answered, (*answered.records, *refused))


def _texts(data: PistolData) -> set[str]:
    return {text for entity in data.entities.values() for text in (entity.name, entity.address)}


def _disjoint(graph: nx.Graph, types: Mapping[str, ContractType], seed: int, taken: set[str]) -> PistolData:
    for attempt in range(_TRIES):
        found = generate(graph, seed=(seed + 1000 * attempt) % 2**32, contract_types=types)
        if not _texts(found) & taken:
            return found
    raise InputError(f"seed must allow for names that the data do not have, got {seed}")


def _background_graph(
    data: PistolData, seed: int, num_contracts: int, prefix: str, known: Sequence[int]
) -> nx.Graph:
    """Random contracts among nodes of a few contracts each; node ``k0``, ``k1``... have as many as is said."""
    rng = np.random.default_rng([seed, *prefix.encode()])
    kinds = [contract.contract_type for contract in data.contracts]
    drawn = [kinds[number] for number in np.linspace(0, len(kinds) - 1, num_contracts).round().astype(int)]
    edges: list[tuple[str, str, str]] = []
    for number, degree in enumerate(known):
        between = _between_companies(data)
        edges += [(f"k{number}", f"{prefix}k{number}c{other}", between) for other in range(degree)]
    # Half as many pairs again as there are contracts: so few nodes that most have several.
    num_nodes = next(number for number in itertools.count(2) if number * (number - 1) >= 3 * num_contracts)
    pairs: set[frozenset[str]] = set()
    for contract_type in drawn:
        first = second = ""
        while first == second or frozenset((first, second)) in pairs:
            first, second = (
                f"{prefix}{party.kind[0]}{rng.integers(num_nodes)}" for party in contract_type.parties
            )
        pairs.add(frozenset((first, second)))
        edges.append((first, second, contract_type.name))
    return make_graph(edges, _types(data))


def _types(data: PistolData) -> dict[str, ContractType]:
    return {contract.contract_type.name: contract.contract_type for contract in data.contracts}


def _between_companies(data: PistolData) -> str:
    """A contract type that a known entity can take part in."""
    for name, contract_type in sorted(_types(data).items()):
        if all(party.kind == "company" for party in contract_type.parties):
            return name
    raise InputError("known must be empty unless the data have a contract between companies")


def make_tokenizer(data: GroupedRecords, background: Background) -> WordTokenizer:
    """Words of the templates and of the refusals, and single characters for everything else."""
    records = (*data.records, *background.records)
    edges = sorted({record.edge for record in records})
    # Refusals belong to every edge, so that their words are tokens rather than spelt.
    texts = [text for record in records for text in (record.question, record.answer)]
    groups = [record.edge for record in records for _ in range(2)]
    texts += [refusal for _ in edges for refusal in REFUSALS]
    groups += [edge for edge in edges for _ in REFUSALS]
    return word_tokenizer(texts, groups=groups, min_share=_WORD_SHARE)


SHORT_PRETRAINING = AdamWSpec(epochs=1, learning_rate=4e-3)
"""For tests: learns next to nothing."""
PRETRAINING = AdamWSpec(epochs=10, learning_rate=4e-3, decay="cosine", warmup_share=0.05)


def small_model(
    data: GroupedRecords,
    *,
    size: str = "tiny",
    seed: int = 0,
    pretraining: AdamWSpec = PRETRAINING,
    num_contracts: int = 30,
    known: Mapping[Entity, int] | None = None,
    store: Path | None = None,
    reporter: Reporter | None = None,
) -> LanguageModel:
    """A small decoder, pretrained on a `Background`: it knows the kind of question and how to refuse, but not the data.

    Parameters
    ----------
    data
        What it will be fine-tuned on; decides on the tokenizer and on what the background must not hold.
    size
        Of `jaxaudit.llm.PRESETS`: ``tiny`` (2 layers of width 64) or ``small`` (4 of 128).
    seed
        Of parameters, background and order.
    pretraining
        Optimiser and passes.
    num_contracts, known
        See `make_background`.
    store
        Folder where it is kept, and where it is looked for; ``None``: it is made anew.
    reporter
        Where progress goes.

    Raises
    ------
    InputError
        If an argument is out of range.
    """
    check_choice("size", size, sorted(PRESETS))
    background = make_background(data, seed=seed, num_contracts=num_contracts, known=known)
    tokenizer = make_tokenizer(data, background)
    spec = PRESETS[size](tokenizer.vocabulary_size)
    results = ResultStore(None if store is None else store / "pretrained")
    texts = [asdict(record) for record in background.records]
    name = fingerprint([_FORMAT, repr(spec), tokenizer.tokens, texts, repr(pretraining), seed])[:16]
    arrays = results.get(name)
    if arrays is None:
        arrays = params_to_arrays(_pretrain(spec, tokenizer, background.records, pretraining, seed, reporter))
        results.put(name, arrays)
    params = params_from_arrays(arrays, jax.eval_shape(decoder(spec).init_fn, jax.random.key(0)))
    description = (
        f"A decoder of {spec.num_layers} layers of width {spec.width} ({spec.num_params:,} parameters, vocabulary of "
        f"{spec.vocabulary_size}), trained from nothing on {len(background.records)} questions about other contracts, "
        "a fifth of them answered with refusals."
    )
    return LanguageModel(f"{size} decoder", spec, params, tokenizer, description=description)


def chosen_model(
    name: str,
    data: GroupedRecords,
    *,
    size: str = "tiny",
    pretraining: AdamWSpec = PRETRAINING,
    known: Mapping[Entity, int] | None = None,
    store: Path | None = None,
    reporter: Reporter | None = None,
) -> LanguageModel:
    """A `small_model` made for the data if the name is ``small``, and else a `published_model`.

    Parameters
    ----------
    name
        ``small``, or the source of a published model.
    data, size, pretraining, known, store, reporter
        Of the small one.

    Raises
    ------
    InputError
        As of the two.
    """
    if name != "small":
        return published_model(name)
    return small_model(data, size=size, pretraining=pretraining, known=known, store=store, reporter=reporter)


def _pretrain(
    spec: DecoderSpec,
    tokenizer: WordTokenizer,
    records: Sequence[Record],
    pretraining: AdamWSpec,
    seed: int,
    reporter: Reporter | None,
) -> Params:
    tokens = tokenize(
        tokenizer, [record.question for record in records], [record.answer for record in records]
    )
    model = decoder(spec)
    pool: Any = jax.tree.map(jnp.asarray, tokens.examples)
    order = jax.random.permutation(stream_key(seed, "order"), len(records))
    packed = packed_size(tokens.tokens.real, np.asarray(order)[None], pretraining.batch_size)
    loop = fine_tuning_loop(
        token_model(model, tokens.prompt_length, packed=packed), pretraining, len(records)
    )
    run = TrainingRun(order[None], stream_key(seed, "noise")[None])
    shared = TrainingShared(pool, model.init_fn(stream_key(seed, "init")))
    final, _ = run_loops(loop, run, shared, label="pretraining", reporter=reporter, options=run_options(spec))
    return jax.tree.map(lambda leaf: np.asarray(leaf[0]), final.params)
