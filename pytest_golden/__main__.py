"""`python -m pytest_golden`: the command `golden`, where it is not on PATH."""

import sys

from pytest_golden.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
