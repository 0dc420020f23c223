"""Table 4 of the paper: the mean against the median of the overlaps of the audited runs.

    python experiments/table4_aggregation.py [--preset cpu|paper|smoke] [--data digits|cifar100|PATH] [--dry-run]

Cost: that of Table 1b, whose runs it reads. Paper: the two agree within a few percent; both are an inverted U in r.
"""

import sys

from cifar100 import Script, main
from cifar100_checks import ratio_check, shape_check
from cifar100_compare import NO_PEAK, compare, draw, keys, pairs, section, series
from cifar100_jobs import Lab
from cifar100_page import Page

VARIANTS = ("mean", "median")


def build(lab: Lab) -> Page:
    """Look at the runs of Table 1b with both statistics."""
    cells = compare(lab, "4", "statistic", VARIANTS)
    return Page(
        name="table4",
        title="Table 4: mean against median of the overlaps",
        script="table4_aggregation.py",
        sections=(section(lab.preset, cells, VARIANTS),),
        cells=tuple(cells.values()),
        checks=(
            ratio_check(
                "mean and median agree within 10 % in most cells",
                pairs(cells, VARIANTS),
                0.10,
                "the median bound asks for half of the runs above a value, which costs more with 10 runs than the mean",
            ),
            *(
                shape_check(f"inverted U in r, {name}", series(cells, name), "peaks", NO_PEAK)
                for name in VARIANTS
            ),
        ),
        draw=lambda panels: draw(panels, cells, VARIANTS),
        num_panels=2,
    )


SCRIPT = Script(keys, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__))
