"""``jaxaudit list``: everything that can be chosen by name."""

from dataclasses import dataclass
from typing import Any

from jaxaudit.cli.common import OK, show
from jaxaudit.scores import SCORES
from jaxaudit.spec import RunSpec, settings_by_suite
from jaxaudit.unlearn import SUITES, MethodEntry, Problem, as_stages, available_methods

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
    """List the unlearning methods, scores, predictors and data sets that can be chosen by name.

    Of each method: the audit that it is part of, what is proved about it, and its cost in gradient evaluations of
    single examples, both at the settings of "jaxaudit run".
    """

    json: bool = False
    """Print one JSON object instead of the text."""

    def execute(self) -> int:
        """Carry out the command; returns the exit code."""
        settings = settings_by_suite(RunSpec(), SUITES)
        methods = {
            name: _facts(entry, settings[entry.suites[0]].problem)
            for name, entry in available_methods().items()
        }
        others = {
            "scores": {name: score.definition for name, score in SCORES.items()},
            "predictors": _PREDICTORS,
            "data": _DATA,
        }
        texts = {"methods": {name: _sentence(facts) for name, facts in methods.items()}} | others
        text = "\n\n".join(_section(title, names) for title, names in texts.items())
        show(text, {"methods": methods} | others, self.json)
        return OK


def _facts(entry: MethodEntry, problem: Problem) -> dict[str, Any]:
    recipe = entry.build(problem)
    certificate = recipe.certificate
    return {
        "title": entry.title,
        "description": entry.description,
        "reference": entry.reference,
        "audits": list(entry.suites),
        "epsilon": None if certificate is None else certificate.epsilon,
        "delta": None if certificate is None else certificate.delta,
        "certificate": None if certificate is None else certificate.reason,
        "gradients": as_stages(recipe.method).cost,
    }


def _sentence(facts: dict[str, Any]) -> str:
    proved = "uncertified"
    if facts["epsilon"] is not None:
        proved = f"certified ({facts['epsilon']:g}, {facts['delta']:g})"
    audits = " ".join(facts["audits"])
    return f"{facts['description']} [{audits}; {proved}; {facts['gradients']:,.0f} gradients; {facts['reference']}]"


def _section(title: str, names: dict[str, str]) -> str:
    width = max(map(len, names))
    return "\n".join([f"{title}:", *(f"  {name:<{width}}  {text}" for name, text in names.items())])
