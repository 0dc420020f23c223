"""Edges as the candidate forget groups of an audit: which edges a run may learn and then forget, and which it keeps."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxaudit.checks import check_integer
from jaxaudit.data.pistol import GroupedRecords, address_questions, edge_degrees, shared_questions
from jaxaudit.errors import InputError
from jaxaudit.scored import ScoredRuns
from jaxaudit.signs import forget_indices, member_indices
from jaxaudit.study.questions import QuestionSet

PARTS = ("all", "exclusive", "shared")
"""Questions that an attacker may look at: every question of the candidates; all but the addresses of entities that have
a retained contract; and these addresses, which are legitimately retained. Values of few kinds, such as a percentage,
recur by chance among the retained answers, and count as exclusive all the same: they are this contract's."""

Runs = TypeVar("Runs", bound=ScoredRuns)


@dataclass(frozen=True, eq=False)
class Candidates:
    """A data set split into candidate edges, of which every run learns half and forgets them, and retained edges.

    Parameters
    ----------
    questions
        The data and the pretrained model.
    edges
        The candidates, the paper's m groups: at least 2, in the order of the data. All other edges are retained.

    Raises
    ------
    InputError
        If an edge is unknown, given twice or out of order, if none is retained, or if the candidates do not all have
        the same number of questions.
    """

    questions: QuestionSet
    edges: tuple[str, ...]

    def __post_init__(self) -> None:
        self.questions.of_edges(self.edges)
        in_order = [edge for edge in self.questions.data.edges if edge in self.edges]
        if list(self.edges) != in_order or len(in_order) < 2:
            raise InputError(
                f"edges must be at least 2 different ones in the order of the data, got {', '.join(self.edges)}"
            )
        if not self.retained:
            raise InputError(f"edges must leave at least one edge to retain, got all {len(self.edges)}")
        sizes = {edge: len(self.questions.rows_of(edge)) for edge in self.edges}
        if len(set(sizes.values())) > 1:
            raise InputError(f"edges must all have the same number of questions, got {sizes}")

    @property
    def num_groups(self) -> int:
        """Number of candidates."""
        return len(self.edges)

    @property
    def group_size(self) -> int:
        """Questions of a candidate."""
        return self.rows.shape[1]

    @cached_property
    def retained(self) -> tuple[str, ...]:
        """Edges that every run learns and keeps."""
        return tuple(edge for edge in self.questions.data.edges if edge not in self.edges)

    @cached_property
    def rows(self) -> Int[np.ndarray, "groups size"]:
        """Numbers of the candidates' questions."""
        return np.stack([self.questions.rows_of(edge) for edge in self.edges])

    @cached_property
    def retained_rows(self) -> Int[np.ndarray, " retain"]:
        """Numbers of the retained questions."""
        return np.flatnonzero(self.questions.of_edges(self.retained))

    @cached_property
    def degrees(self) -> Int[np.ndarray, " groups"]:
        """Degree of every candidate: edges that touch it, itself included."""
        degrees = edge_degrees(self.questions.contracts)
        return np.array([degrees[edge] for edge in self.edges])

    @cached_property
    def shared(self) -> Bool[np.ndarray, "groups size"]:
        """Questions of candidates that ask for the address of an entity that has a retained contract, too."""
        return np.array(shared_questions(self.questions.contracts, self.edges)).reshape(self.rows.shape)

    @cached_property
    def addresses(self) -> Bool[np.ndarray, "groups size"]:
        """Questions of candidates that ask for an address."""
        return np.array(address_questions(self.questions.contracts, self.edges)).reshape(self.rows.shape)

    @cached_property
    def parts(self) -> dict[str, Bool[np.ndarray, "groups size"]]:
        """The questions of `PARTS`; without those that hold no question, or all of them under another name."""
        flags = {"all": np.ones(self.rows.shape, bool), "exclusive": ~self.shared, "shared": self.shared}
        return {name: own for name, own in flags.items() if name == "all" or (own.any() and not own.all())}

    @property
    def _pool(self) -> Int[np.ndarray, " pool"]:
        """Questions in the order of an audit's pool: those that are retained, then group after group."""
        return np.concatenate([self.retained_rows, self.rows.reshape(-1)])

    def members(
        self, signs: Int[np.ndarray, "runs groups"], order: Int[np.ndarray, " pool"]
    ) -> Int[np.ndarray, "runs members"]:
        """Numbers of the questions that each run learns, in the one order of all runs.

        Parameters
        ----------
        signs
            Balanced, +1 = learnt and then forgotten.
        order
            A permutation of all questions, which does not depend on the signs.
        """
        return self._pool[member_indices(signs, len(self.retained_rows), self.group_size, order)]

    def forgotten(
        self, signs: Int[np.ndarray, "runs groups"], order: Int[np.ndarray, " pool"]
    ) -> Int[np.ndarray, "runs forget"]:
        """Numbers of the questions that each run forgets, in the same order; arguments as of `members`."""
        return self._pool[forget_indices(signs, len(self.retained_rows), self.group_size, order)]

    def kept(self, order: Int[np.ndarray, " pool"]) -> Int[np.ndarray, " retain"]:
        """Numbers of the retained questions, in the same order."""
        return self._pool[order[order < len(self.retained_rows)]]

    def reference_members(self, order: Int[np.ndarray, " pool"]) -> Int[np.ndarray, " members"]:
        """What exact retraining reads: retained questions in their places, and in the others the example of weight 0.

        As many places as any run has, so that retraining takes as many updates; it is the same for all sign vectors.
        """
        half = self.num_groups // 2
        fixed = np.array([1] * half + [-1] * (self.num_groups - half))[None]
        read = self.members(fixed, order)[0]
        return np.where(np.isin(read, self.retained_rows), read, self.questions.num_questions)

    def restrict(self, runs: Runs, part: str) -> Runs:
        """The same runs as seen by an attacker who looks at a part of the questions only.

        Raises
        ------
        InputError
            If there is no such part.
        """
        if part not in self.parts:
            raise InputError(f"part must be one of {', '.join(self.parts)}, got {part!r}")
        return restrict_to(runs, self.parts[part])

    def matched(self) -> dict[str, Bool[np.ndarray, "groups size"]]:
        """Addresses of edges one of whose two is ``exclusive`` and the other ``shared``, so that these can be compared.

        Other questions have answers of another kind and length, and would be told apart better or worse for that
        alone. Without such an edge nothing is returned.
        """
        both = (self.shared.any(axis=1) & (self.addresses & ~self.shared).any(axis=1))[:, None]
        flags = {"exclusive": self.addresses & ~self.shared & both, "shared": self.shared & both}
        return flags if both.any() else {}


def restrict_to(runs: Runs, flags: Bool[np.ndarray, "groups size"]) -> Runs:
    """The same runs as seen by an attacker who looks at some questions only.

    A group without such a question gets one constant score, which is no evidence.

    Parameters
    ----------
    runs
        Calibration or audited runs.
    flags
        Questions that are seen.
    """
    weights: Float[np.ndarray, "groups size"] = flags.astype(float)
    weights[~flags.any(axis=1), 0] = 1.0
    scores = np.where(flags, runs.scores, 0.0)
    return type(runs)(runs.signs, scores, runs.run_ids, runs.failed, weights)


def draw_candidates(data: GroupedRecords, num_groups: int, *, seed: int) -> tuple[str, ...]:
    """Candidate edges, drawn from all over the graph without looking at it; in the order of the data.

    Parameters
    ----------
    data
        At least one more edge than candidates.
    num_groups
        At least 2.
    seed
        The same seed draws the same edges.

    Raises
    ------
    InputError
        If there are too few edges.

    Examples
    --------
    >>> from jaxaudit.data.pistol import chain, generate
    >>> draw_candidates(generate(chain(7), seed=0), 4, seed=0)
    ('0_1', '1_2', '2_3', '4_5')
    """
    check_integer("num_groups", num_groups, low=2, high=len(data.edges) - 1)
    rng = np.random.default_rng([seed, *b"candidates"])
    drawn = np.sort(rng.choice(len(data.edges), num_groups, replace=False))
    return tuple(data.edges[number] for number in drawn)
