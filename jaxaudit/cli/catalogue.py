"""``jaxaudit list``: everything that can be chosen by name."""

from dataclasses import dataclass

from jaxaudit.cli.common import OK, show
from jaxaudit.scores import SCORES
from jaxaudit.unlearn import METHODS

_PREDICTORS = {
    "batchwise": "guesses group by group (Algorithm 2 of the paper)",
    "joint": "guesses the whole sign vector at once (Algorithm 3), for few groups",
}
_DATA = {
    "digits": "scikit-learn's 1,797 handwritten digits",
    "FILE.npz": "your records: arrays x and y, optionally ids, holdout_x and holdout_y",
    "FILE.csv": "your records: columns label, optionally id, and numeric features",
}


@dataclass(frozen=True)
class Catalogue:
    """List the unlearning methods, scores, predictors and data sets that can be chosen by name."""

    json: bool = False
    """Print one JSON object instead of the text."""

    def execute(self) -> int:
        """Carry out the command; returns the exit code."""
        document = {
            "methods": {entry.name: f"{entry.description} ({entry.reference})" for entry in METHODS.values()},
            "scores": {name: score.definition for name, score in SCORES.items()},
            "predictors": _PREDICTORS,
            "data": _DATA,
        }
        show("\n\n".join(_section(title, names) for title, names in document.items()), document, self.json)
        return OK


def _section(title: str, names: dict[str, str]) -> str:
    width = max(map(len, names))
    return "\n".join([f"{title}:", *(f"  {name:<{width}}  {text}" for name, text in names.items())])
