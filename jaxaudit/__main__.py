"""``python -m jaxaudit``: the command line, where the program itself is not on the path."""

import sys

from jaxaudit.cli import main

if __name__ == "__main__":
    sys.exit(main())
