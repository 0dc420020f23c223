"""Questions about authors instead of contracts: every author is a group that can be forgotten, as an edge is."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from jaxaudit.data.pistol.authors import AuthorData
from jaxaudit.study.questions import QuestionSet


@dataclass(frozen=True, eq=False)
class AuthorQuestions(QuestionSet):
    """All questions about authors, in the format of TOFU, for one model.

    What a `QuestionSet` says of edges holds of authors: distances are counted in relations, domains are kinds of
    authors. No answer is shared by right, since the pairs of an author are about that author alone.

    Parameters
    ----------
    data
        Pairs, kinds and relations.
    model
        Its tokenizer and template make the rows of tokens.
    """

    data: AuthorData

    @property
    def description(self) -> str:
        """What the data are, for a report."""
        data = self.data
        return f"{data.num_authors} authors, {len(data.relations)} relations, {self.num_questions} questions"

    def _domain_of_edges(self) -> Mapping[str, str]:
        return self.data.domains

    def shared(self, edge: str) -> Bool[np.ndarray, " questions"]:
        """No question."""
        return np.zeros(self.num_questions, bool)

    def strata(self, edge: str) -> Mapping[str, tuple[str, ...]]:
        """Retained authors by their distance from a forgotten one."""
        return self.data.strata(edge)
