"""Cost against size: projects, entries, memories, steps, output, folders; each beside its floor, as a page and as figures.

A study goes from size to size until the next one would take longer than it is given.

Run: python benchmarks/scale [--quick] [--only WORD] [--minutes-each M] [--to FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

# Named as a folder, this one is looked in first, where a module of ours would hide another's.
sys.path[0] = str(Path(__file__).parents[1])


def main() -> None:
    from scale import running

    running.main(__doc__ or "")


if __name__ == "__main__":
    main()
