"""Loads the readings of weather stations into SQLite: one unit, no doubles, faults marked, short gaps filled.

Reads data/*.csv beside this file and writes weather.db, and stations.json with a summary of each station, into the
working folder. Ends with 1 when a check fails.
"""

from __future__ import annotations

import csv
import json
import sqlite3
import statistics
import sys
from contextlib import closing, nullcontext
from datetime import datetime, timedelta
from pathlib import Path

try:
    from pytest_golden.steps import step
except ImportError:

    def step(name, **_fields):
        """Stand in where pytest-golden-projects is not installed: the ETL runs without it."""
        return nullcontext()


DATA = Path(__file__).parent / "data"
DATABASE = Path("weather.db")
SUMMARY = Path("stations.json")
# The coldest and the warmest March hour ever measured in the stations' country lie well inside.
PLAUSIBLE_CELSIUS = (-35.0, 35.0)
# An hour that differs from the median of its neighbours by more is a fault of the sensor.
SPIKE_CELSIUS = 12.0
LONGEST_GAP_HOURS = 3
HOUR = timedelta(hours=1)

# station, hour, degrees Celsius, humidity, rain, quality
Reading = tuple[str, str, float | None, int | None, float | None, str]

SCHEMA = """
CREATE TABLE station (station TEXT PRIMARY KEY, name TEXT NOT NULL, altitude_m INTEGER NOT NULL);
CREATE TABLE reading (
    station TEXT NOT NULL REFERENCES station,
    hour TEXT NOT NULL,
    celsius REAL CHECK (celsius BETWEEN -35 AND 35),
    humidity_percent INTEGER CHECK (humidity_percent BETWEEN 0 AND 100),
    rain_mm REAL CHECK (rain_mm >= 0),
    quality TEXT NOT NULL CHECK (quality IN ('measured', 'interpolated', 'missing')),
    PRIMARY KEY (station, hour)
) WITHOUT ROWID;
CREATE VIEW daily AS
    SELECT station, substr(hour, 1, 10) AS day, round(avg(celsius), 2) AS mean_celsius, min(celsius) AS min_celsius,
           max(celsius) AS max_celsius, round(sum(rain_mm), 1) AS rain_mm, count(celsius) AS hours
    FROM reading GROUP BY station, day;
"""

CHECKS = {
    "every station has readings": """
        SELECT station FROM station WHERE station NOT IN (SELECT station FROM reading)""",
    "at most 2 % of the hours are missing": """
        SELECT station, avg(quality = 'missing') FROM reading GROUP BY station HAVING avg(quality = 'missing') > 0.02""",
    "no hour is skipped": """
        SELECT station, count(*) FROM reading GROUP BY station
        HAVING count(*) <> 1 + round((julianday(max(hour)) - julianday(min(hour))) * 24)""",
    "the summit is colder than the valleys": """
        SELECT s.station FROM station s WHERE altitude_m < 1000
        AND (SELECT avg(celsius) FROM reading r WHERE r.station = s.station)
            < (SELECT avg(celsius) FROM reading JOIN station USING (station) WHERE altitude_m >= 1000)""",
    "days are between 20 degrees below and 30 above zero": """
        SELECT station, day, mean_celsius FROM daily WHERE mean_celsius NOT BETWEEN -20 AND 30""",
}


def main() -> int:
    """Extract, transform, load and check."""
    with step("extract"):
        stations = read_csv(DATA / "stations.csv")
        raw = {row["station"]: read_csv(DATA / f"readings_{row['station']}.csv") for row in stations}
    with step("transform", rows=sum(map(len, raw.values()))):
        readings = [row for station in stations for row in clean(station, raw[station["station"]])]
    with step("load", rows=len(readings)):
        load(stations, readings)
    with step("check", checks=len(CHECKS)):
        failures = check()
    summarise()
    for failure in failures:
        print(f"check failed: {failure}", file=sys.stderr)
    counts = {
        quality: sum(row[5] == quality for row in readings) for quality in ("measured", "interpolated", "missing")
    }
    print(f"{len(readings)} hours of {len(stations)} stations:", ", ".join(f"{n} {name}" for name, n in counts.items()))
    return 1 if failures else 0


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read a table as text."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def clean(station: dict[str, str], raw: list[dict[str, str]]) -> list[Reading]:
    """Give one row an hour, from the first to the last, in degrees Celsius."""
    by_hour = {datetime.fromisoformat(row["timestamp"]): row for row in raw}
    celsius = {hour: to_celsius(row["temperature"], station["temperature_unit"]) for hour, row in by_hour.items()}
    without_spikes(celsius)
    rows = []
    hour, last = min(by_hour), max(by_hour)
    while hour <= last:
        value, quality = celsius.get(hour), "measured"
        if value is None:
            value = interpolate(celsius, hour)
            quality = "missing" if value is None else "interpolated"
        row = by_hour.get(hour)
        shown = None if value is None else round(value, 1)
        humidity, rain = (None, None) if row is None else (int(row["humidity_percent"]), float(row["rain_mm"]))
        rows.append((station["station"], hour.isoformat(), shown, humidity, rain, quality))
        hour += HOUR
    return rows


def to_celsius(text: str, unit: str) -> float | None:
    """Give a temperature, or None for what a faulty sensor sends."""
    try:
        value = float(text)
    except ValueError:
        return None
    value = (value - 32) * 5 / 9 if unit == "F" else value
    return value if PLAUSIBLE_CELSIUS[0] <= value <= PLAUSIBLE_CELSIUS[1] else None


def without_spikes(celsius: dict[datetime, float | None]) -> None:
    """Take out single hours that no weather explains."""
    for hour, value in list(celsius.items()):
        around = [celsius.get(hour + offset * HOUR) for offset in (-3, -2, -1, 1, 2, 3)]
        known = [other for other in around if other is not None]
        if value is not None and len(known) > 2 and abs(value - statistics.median(known)) > SPIKE_CELSIUS:
            celsius[hour] = None


def interpolate(celsius: dict[datetime, float | None], hour: datetime) -> float | None:
    """Fill a short gap along a straight line between the hours around it."""
    before = next((n for n in range(1, LONGEST_GAP_HOURS + 1) if celsius.get(hour - n * HOUR) is not None), None)
    after = next((n for n in range(1, LONGEST_GAP_HOURS + 1) if celsius.get(hour + n * HOUR) is not None), None)
    if before is None or after is None or before + after - 1 > LONGEST_GAP_HOURS:
        return None
    left, right = celsius[hour - before * HOUR], celsius[hour + after * HOUR]
    return left + (right - left) * before / (before + after)


def load(stations: list[dict[str, str]], readings: list[Reading]) -> None:
    """Fill a new database, in one transaction."""
    DATABASE.unlink(missing_ok=True)
    with closing(sqlite3.connect(DATABASE)) as database:
        database.executescript(SCHEMA)
        with database:
            rows = [(row["station"], row["name"], int(row["altitude_m"])) for row in stations]
            database.executemany("INSERT INTO station VALUES (?, ?, ?)", rows)
            database.executemany("INSERT INTO reading VALUES (?, ?, ?, ?, ?, ?)", readings)


def summarise() -> None:
    """Write what a person would ask of each station first."""
    query = """
        SELECT station, count(*) AS hours, sum(quality = 'interpolated') AS interpolated, sum(quality = 'missing') AS missing,
               round(avg(celsius), 3) AS mean_celsius, min(celsius) AS min_celsius, max(celsius) AS max_celsius,
               round(sum(rain_mm), 1) AS rain_mm
        FROM reading GROUP BY station ORDER BY station"""
    with closing(sqlite3.connect(DATABASE)) as database:
        database.row_factory = sqlite3.Row
        stations = [dict(row) for row in database.execute(query)]
    SUMMARY.write_text(json.dumps({"stations": stations}, indent=2) + "\n", encoding="utf-8")


def check() -> list[str]:
    """Give the checks that found something, with what they found first."""
    with closing(sqlite3.connect(DATABASE)) as database:
        found = {name: database.execute(query).fetchall() for name, query in CHECKS.items()}
    return [f"{name}: {len(rows)} exceptions, first {rows[0]}" for name, rows in found.items() if rows]


if __name__ == "__main__":
    sys.exit(main())
