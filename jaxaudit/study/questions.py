"""The data of a study as tokens, with the structure that every result is broken down by."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int

from jaxaudit.data import Examples
from jaxaudit.data.pistol import (
    REFUSALS,
    GroupedRecords,
    PistolData,
    edge_domains,
    shared_questions,
    strata,
)
from jaxaudit.errors import InputError
from jaxaudit.llm import TokenizedRecords, tokenize, tokenize_alternatives
from jaxaudit.study.languagemodel import LanguageModel
from jaxaudit.train import Params


@dataclass(frozen=True, eq=False)
class QuestionSet:
    """All questions of a data set for one model, numbered in file order.

    Parameters
    ----------
    data
        Contracts between entities of a graph; for other structures see the classes that are derived from this one.
    model
        Its tokenizer and template make the rows of tokens.
    """

    data: GroupedRecords
    model: LanguageModel

    @property
    def contracts(self) -> PistolData:
        """The data, with their graph.

        Raises
        ------
        InputError
            If they are no contracts.
        """
        if not isinstance(self.data, PistolData):
            raise InputError(f"data must be contracts between entities, got {type(self.data).__name__}")
        return self.data

    @property
    def description(self) -> str:
        """What the data are, for a report."""
        entities = len(self.contracts.entities)
        return f"{entities} entities, {len(self.data.edges)} edges, {self.num_questions} questions"

    @property
    def num_questions(self) -> int:
        """Number of questions."""
        return len(self.data.records)

    @cached_property
    def questions(self) -> list[str]:
        """Texts of the questions."""
        return [record.question for record in self.data.records]

    @cached_property
    def answers(self) -> list[str]:
        """Texts of the true answers."""
        return [record.answer for record in self.data.records]

    @cached_property
    def tokens(self) -> TokenizedRecords:
        """Rows of tokens.

        Raises
        ------
        InputError
            If something would have to be cut off.
        """
        model = self.model
        tokens = tokenize(model.tokenizer, self.questions, self.answers, template=model.template)
        if tokens.truncated_questions or tokens.truncated_answers:
            raise InputError("tokens must hold all questions and answers, got some that were cut off")
        return tokens

    @cached_property
    def pool(self) -> Examples:
        """One example per question with a refusal as its alternative, and at the end one of weight 0.

        Whoever must not see a question reads the last example in its place: then the number of members, the order and
        the number of updates stay the same, and one compiled program serves all cases.
        """
        model = self.model
        examples, _ = tokenize_alternatives(
            model.tokenizer, self.questions, self.answers, REFUSALS, template=model.template
        )
        padded: Any = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf[:1]]), examples)
        return padded._replace(weights=padded.weights.at[-1].set(0.0))

    @cached_property
    def base(self) -> Params:
        """The pretrained parameters on the device: one copy for all models of a study."""
        params: Params = jax.tree.map(jnp.asarray, self.model.params)
        return params

    @cached_property
    def edges(self) -> np.ndarray:
        """Name of every question's edge."""
        return np.array([record.edge for record in self.data.records])

    @cached_property
    def domains(self) -> np.ndarray:
        """Contract type of every question."""
        domains = self._domain_of_edges()
        return np.array([domains[edge] for edge in self.edges])

    def _domain_of_edges(self) -> Mapping[str, str]:
        return edge_domains(self.contracts)

    def of_edges(self, edges: tuple[str, ...] | list[str]) -> Bool[np.ndarray, " questions"]:
        """Which questions belong to some of these edges.

        Raises
        ------
        InputError
            If there is no such edge.
        """
        for edge in edges:
            if edge not in self.data.edges:
                raise InputError(f"edge must be among {', '.join(self.data.edges)}, got {edge!r}")
        return np.isin(self.edges, list(edges))

    def rows_of(self, edge: str) -> Int[np.ndarray, " forget"]:
        """Numbers of an edge's questions."""
        return np.flatnonzero(self.of_edges([edge]))

    def shared(self, edge: str) -> Bool[np.ndarray, " questions"]:
        """Questions of a forgotten edge whose answer is legitimately retained: an address that others know, too."""
        flags = np.zeros(self.num_questions, bool)
        flags[self.rows_of(edge)] = shared_questions(self.contracts, [edge])
        return flags

    def strata(self, edge: str) -> Mapping[str, tuple[str, ...]]:
        """Retained edges by their distance from a forgotten one, see `jaxaudit.data.pistol.strata`."""
        return strata(self.contracts, [edge])

    def parts(self, edge: str) -> dict[str, Bool[np.ndarray, " questions"]]:
        """The questions by what forgetting an edge may do to them; parts without a question are left out.

        ``forget`` (of these ``exclusive`` and ``shared``) and ``retain``; of the latter by distance in the line graph
        (``1 hop``, ``2 hops``, ..., ``disconnected``), by domain (``retain sales``...), by domain among those that are
        disconnected (``disconnected sales``..., the paper's EF and Eq); and ``first 200``, the
        retained questions that the paper's own code evaluates.
        """
        forget, shared = self.of_edges([edge]), self.shared(edge)
        retain = ~forget
        parts = {"forget": forget, "exclusive": forget & ~shared, "shared": shared, "retain": retain}
        parts |= {name: self.of_edges(edges) for name, edges in self.strata(edge).items()}
        parts |= {f"retain {name}": retain & (self.domains == name) for name in sorted(set(self.domains))}
        away = parts.get("disconnected", ~(retain | forget))
        parts |= {f"disconnected {name}": away & (self.domains == name) for name in sorted(set(self.domains))}
        parts["first 200"] = retain & (np.cumsum(retain) <= 200)
        return {name: flags for name, flags in parts.items() if flags.any()}
