"""Makes the raw station readings in data/, gaps, outliers and mixed units included; always the same.

Run it again only to change the data: `python examples/weather/make_data.py`. What comes out is committed.
"""

from __future__ import annotations

import csv
import math
import random
from datetime import datetime, timedelta
from pathlib import Path

DATA = Path(__file__).parent / "data"
STATIONS = (
    {"station": "HAM", "name": "Hamburg harbour", "altitude_m": 8, "temperature_unit": "C", "mean": 8.5, "swing": 4.0},
    {
        "station": "BRK",
        "name": "Brocken summit",
        "altitude_m": 1134,
        "temperature_unit": "C",
        "mean": 1.5,
        "swing": 2.5,
    },
    {
        "station": "FRB",
        "name": "Freiburg airfield",
        "altitude_m": 244,
        "temperature_unit": "F",
        "mean": 11.0,
        "swing": 6.0,
    },
    {"station": "GRZ", "name": "Goerlitz", "altitude_m": 238, "temperature_unit": "C", "mean": 9.0, "swing": 5.0},
)
FIRST_HOUR = datetime(2025, 3, 1)  # noqa: DTZ001 - stations report in UTC without saying so
HOURS = 24 * 21
SENSOR_FAULTS = ("-999.9", "", "n/a", "85.0")


def main() -> None:
    """Write the stations and one file of readings a station."""
    chance = random.Random(7)
    DATA.mkdir(exist_ok=True)
    columns = ("station", "name", "altitude_m", "temperature_unit")
    write("stations.csv", columns, [[str(station[key]) for key in columns] for station in STATIONS])
    for station in STATIONS:
        columns = ("timestamp", "temperature", "humidity_percent", "rain_mm")
        write(f"readings_{station['station']}.csv", columns, make_readings(chance, station))


def make_readings(chance: random.Random, station: dict[str, object]) -> list[list[str]]:
    """Hourly readings; some hours are missing, some were sent twice, and sensors fail now and then."""
    rows = []
    drift = 0.0
    for hour in range(HOURS):
        moment = FIRST_HOUR + timedelta(hours=hour)
        drift = 0.97 * drift + chance.gauss(0, 0.45)
        celsius = (
            float(station["mean"]) - float(station["swing"]) * math.cos((moment.hour - 3) / 24 * 2 * math.pi) + drift
        )
        if chance.random() < 0.015:
            continue
        rain = round(chance.expovariate(1 / 0.9), 1) if chance.random() < 0.12 else 0.0
        humidity = min(100, max(25, round(78 - 2.2 * drift + chance.gauss(0, 6))))
        row = [f"{moment:%Y-%m-%dT%H:%M:%S}", write_temperature(chance, celsius, station), str(humidity), f"{rain:.1f}"]
        rows.append(row)
        if chance.random() < 0.01:
            rows.append(list(row))
    return rows


def write_temperature(chance: random.Random, celsius: float, station: dict[str, object]) -> str:
    """A reading in the station's unit, or what its sensor sends when it fails."""
    if chance.random() < 0.008:
        return chance.choice(SENSOR_FAULTS)
    return f"{celsius * 9 / 5 + 32 if station['temperature_unit'] == 'F' else celsius:.1f}"


def write(name: str, columns: tuple[str, ...], rows: list[list[str]]) -> None:
    """Write a table as CSV."""
    with (DATA / name).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([columns, *rows])


if __name__ == "__main__":
    main()
