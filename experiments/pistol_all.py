"""All tables of the PISTOL paper, one after the other, and every edge of Dataset 1.

    python experiments/pistol_all.py [--model small|smollm2|FOLDER] [--preset cpu|paper|smollm2|smoke]
        [--reading pistol_paper|pistol_code] [--dry-run]

Cost: `--dry-run` says it; what is finished is kept, and a killed run goes on.
"""

import sys

import pistol_appendix
import pistol_degrees
import pistol_table2
import pistol_table3
import pistol_table4
import pistol_table5
from pistol import run

MODULES = (
    pistol_table2,
    pistol_table4,
    pistol_degrees,
    pistol_table3,
    pistol_table5,
    pistol_appendix,
)

if __name__ == "__main__":
    sys.exit(run([module.SCRIPT for module in MODULES], __doc__ or ""))
