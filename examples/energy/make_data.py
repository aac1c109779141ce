"""Makes the hourly electricity load of a small town in data/load.csv; always the same.

Run it again only to change the data: `python examples/energy/make_data.py`. What comes out is committed.
"""

from __future__ import annotations

import csv
import math
import random
from datetime import datetime, timedelta
from pathlib import Path

DATA = Path(__file__).parent / "data"
FIRST_HOUR = datetime(2025, 1, 6)  # noqa: DTZ001 - a Monday; the meters report in UTC without saying so
HOURS = 24 * 7 * 8


def main() -> None:
    """Write eight weeks of load and outside temperature, with a few lost hours."""
    chance = random.Random(11)
    DATA.mkdir(exist_ok=True)
    cold = 0.0
    rows = []
    for number in range(HOURS):
        hour = FIRST_HOUR + timedelta(hours=number)
        cold = 0.985 * cold + chance.gauss(0, 0.5)
        temperature = 2.0 + number / HOURS * 6 - 3.5 * math.cos((hour.hour - 4) / 24 * 2 * math.pi) - cold
        load = base_load(hour) + 0.22 * max(0.0, 14.0 - temperature) + chance.gauss(0, 0.25)
        lost = chance.random() < 0.01
        rows.append([f"{hour:%Y-%m-%d %H:%M}", "" if lost else f"{load:.2f}", f"{temperature:.1f}"])
    with (DATA / "load.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([["hour", "load_mw", "temperature_c"], *rows])


def base_load(hour: datetime) -> float:
    """What the town uses whatever the weather: two peaks a day, less at weekends."""
    morning = math.exp(-((hour.hour - 8.5) ** 2) / 8)
    evening = math.exp(-((hour.hour - 19) ** 2) / 9)
    weekend = 0.6 if hour.weekday() >= 5 else 1.0
    return 9.0 + weekend * (3.2 * morning + 4.1 * evening)


if __name__ == "__main__":
    main()
