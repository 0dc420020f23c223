"""Table 3 of the paper: the logit score against the cross-entropy loss as the auditor's score.

    python experiments/table3_scores.py [--preset cpu|paper|smoke] [--data digits|cifar100|PATH] [--dry-run]

Cost: that of Table 1b, whose runs it reads. Paper: the same trends in r; logit a little higher in most cells.
"""

import sys

from cifar100 import Script, main
from cifar100_checks import pairs_check, ratio_check, shape_check
from cifar100_compare import NO_PEAK, compare, draw, keys, pairs, section, series
from cifar100_jobs import Lab
from cifar100_page import Page

VARIANTS = ("logit", "loss")
_PAPER_GAP = 0.10
"""Median difference of the two columns of the paper's table, as a share of the larger one."""


def build(lab: Lab) -> Page:
    """Look at the runs of Table 1b with both scores."""
    cells = compare(lab, "3", "score", VARIANTS)
    return Page(
        name="table3",
        title="Table 3: logit score against cross-entropy loss",
        script="table3_scores.py",
        sections=(section(lab.preset, cells, VARIANTS),),
        cells=tuple(cells.values()),
        checks=(
            pairs_check(
                "the logit score gives the higher bound in most cells",
                pairs(cells, VARIANTS),
                share=0.5,
                reason="two Gaussians fit both scores about equally well",
            ),
            ratio_check(
                f"the two scores differ by less than {2 * _PAPER_GAP:.0%} in most cells (median in the paper: "
                f"{_PAPER_GAP:.0%})",
                pairs(cells, VARIANTS),
                2 * _PAPER_GAP,
            ),
            *(
                shape_check(f"inverted U in r, {name}", series(cells, name), "peaks", NO_PEAK)
                for name in VARIANTS
            ),
        ),
        draw=lambda panels: draw(panels, cells, VARIANTS),
        num_panels=2,
        notes=(
            "The loss is a function of the logit score, image by image: minus the loss is -log(1 + exp(-logit)). So "
            "the same runs give both columns, and what differs is how well two Gaussians fit the scores. In the "
            "paper's table the logit score is above in 29 of 40 cells.",
        ),
    )


SCRIPT = Script(keys, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__))
