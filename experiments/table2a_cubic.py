"""Table 2a of the paper: perturbed Newton unlearning of the cubic loss.

    python experiments/table2a_cubic.py [--preset paper|text|smoke] [--out DIR] [--seed N] [--quiet]

Cost: seconds on 2 CPU cores. Paper, certified -> pairwise: 5 -> 0.29, 50 -> 1.47, 100 -> 2.33, 800 -> 10.20.
"""

import itertools
import sys
from typing import Any

import numpy as np
from table2 import DELTA, Experiment, Options, main, printed_rows
from table2_page import markdown_table

from jaxaudit.convex import CubicLoss, NewtonUnlearning, cubic_points, perturbed_newton, unlearn_by_newton

NUM_RETAIN, NUM_FORGET = 1000, 50
CERTIFIED = (0.1, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 400, 600, 800)
PARAMETERS = {"regularisation": 0.2, "cubic": 0.001, "radius": 2.5, "distance": 10.0}
TEXT = {**PARAMETERS, "cubic": 0.005}
SWEEP = {
    "regularisation": (0.10, 0.12, 0.15, 0.18, 0.20),
    "cubic": (0.001, 0.002, 0.005),
    "radius": (2.5, 3.0, 3.5),
    "distance": (4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0),
}
"""The paper's sweep, Appendix H.4.1."""


def unlearn(regularisation: float, cubic: float, radius: float, distance: float) -> NewtonUnlearning:
    """Train, unlearn and retrain one problem."""
    data = cubic_points(NUM_RETAIN, NUM_FORGET, distance)
    return unlearn_by_newton(CubicLoss(regularisation, cubic), data, radius)


def sweep() -> list[dict[str, Any]]:
    """Ratio rho of Lemma 3 over the paper's sweep, largest first, where the lemma holds."""
    rows = []
    for values in itertools.product(*SWEEP.values()):
        parameters = dict(zip(SWEEP, values))
        result = unlearn(**parameters)
        if result.is_interior:
            rows.append({**parameters, "gamma": result.distance_bound, "ratio": result.ratio})
    return sorted(rows, key=lambda row: -row["ratio"])


def build(options: Options) -> Experiment:
    """The experiment of a preset."""
    parameters = TEXT if options.preset == "text" else PARAMETERS
    result = unlearn(**parameters)
    ratios = sweep()
    return Experiment(
        name="table2a",
        title="Table 2a: perturbed Newton unlearning, cubic loss",
        script="table2a_cubic.py",
        pair=perturbed_newton(result),
        certified=(5, 50) if options.preset == "smoke" else CERTIFIED,
        table="2a",
        parameters={
            "lambda_0": parameters["regularisation"],
            "M": parameters["cubic"],
            "B": parameters["radius"],
            "R": parameters["distance"],
            "retain + forget points": f"{NUM_RETAIN} + {NUM_FORGET}",
            "delta": DELTA,
            "weight trained on everything": f"{result.trained[0]:.6f}",
            "weight after the Newton step": f"{result.unlearned[0]:.7f}",
            "weight retrained": f"{result.retrained[0]:.6f}",
            "gamma (Lemma 3; sensitivity)": f"{result.distance_bound:.6f}",
            "rho (actual distance / gamma)": f"{result.ratio:.4f}",
        },
        notes=(*_which_parameters(), *_ratios(ratios), *_slips()),
        details={"sweep": ratios},
    )


def _which_parameters() -> list[str]:
    printed = printed_rows("2a")
    rows = []
    for name, parameters in (("M = 0.001 (preset paper)", PARAMETERS), ("M = 0.005 (preset text)", TEXT)):
        pair = perturbed_newton(unlearn(**parameters))
        sigmas = {epsilon: pair.sigma(epsilon, DELTA) for epsilon in printed}
        agree = all(abs(sigmas[epsilon] - row.sigma) <= 5.1e-5 for epsilon, row in printed.items())
        shown = [f"{sigmas[epsilon]:.4f}" for epsilon in (0.1, 5, 100, 800)]
        rows.append([name, f"{pair.sensitivity:.6f}", *shown, "all" if agree else "no"])
    rows.append(["printed", "", *(f"{printed[epsilon].sigma:.4f}" for epsilon in (0.1, 5, 100, 800)), ""])
    header = ["parameters", "gamma", *(f"sigma at {epsilon:g}" for epsilon in (0.1, 5, 100, 800)), "agrees"]
    return [
        "**Which parameters made the printed numbers?** The paper's text says M = 0.005 and leaves lambda_0 "
        "and the numbers of points open (1000 + 50 and the best lambda_0 of the sweep are assumed). Only "
        "M = 0.001 gives the printed sigmas.",
        markdown_table(header, rows),
    ]


def _ratios(ratios: list[dict[str, Any]]) -> list[str]:
    header = ["M", "B", "R", "lambda_0", "rho"]
    keys = ("cubic", "radius", "distance", "regularisation")
    rows = [[*(f"{row[key]:g}" for key in keys), f"{row['ratio']:.4f}"] for row in ratios[:5]]
    best = next(row for row in ratios if row["cubic"] == 0.005)
    rows.append([*(f"{best[key]:g}" for key in keys), f"{best['ratio']:.4f}"])
    return [
        "**How tight is Lemma 3?** The ratio rho (H.3) over the paper's sweep, among the problems whose optimum "
        f"lies inside the box ({len(ratios)} of {np.prod([len(values) for values in SWEEP.values()])}): the five "
        "largest, and the largest with M = 0.005. The paper reports 0.22 as the largest and names M = 0.005, "
        "B = 2.5, R = 10 for it; it is reached with M = 0.001.",
        markdown_table(header, rows),
    ]


def _slips() -> list[str]:
    items = [
        "Joint bound at epsilon = 5: printed 0.01406, a slip for 0.0146.",
        "The joint column says delta = 0; it was made with delta = 0.01 and without the factor K of Lemma C.1.",
        '"Both saturate near 10.19" holds for the pairwise bound (10.1975 at delta = 0.01); the joint bound '
        "saturates at 11.10.",
        "sigma at epsilon = 800 is 0.0017196; the code behind the paper found 0.0017207. Both print as 0.0017.",
        "The forget points pull the weight towards -B, not +B.",
        "Gamma = 50 models in the text; the printed numbers rest on 500 noise draws around one fixed weight. "
        "Here too: the mechanism before its noise is deterministic.",
    ]
    return [
        "**Slips in the paper that matter when numbers are compared.**",
        "\n".join(f"* {i}" for i in items),
    ]


if __name__ == "__main__":
    sys.exit(main(build, __doc__))
