"""Sums a month's orders by region with the query in revenue.sql, and checks the sums against the orders one by one.

Run: python revenue.py ORDERS.csv (writes revenue.csv; ends with 1 when a check fails)
"""

from __future__ import annotations

import csv
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from pytest_golden.steps import step

CUSTOMERS = {"c1": "north", "c2": "south", "c3": "north"}


def load(database, path):
    with path.open(encoding="utf-8", newline="") as file:
        orders = [{**row, "cents": int(row["cents"])} for row in csv.DictReader(file)]
    database.execute("CREATE TABLE customers (customer_id TEXT, region TEXT)")
    database.execute("CREATE TABLE orders (order_id TEXT, customer_id TEXT, status TEXT, cents INTEGER)")
    database.executemany("INSERT INTO customers VALUES (?, ?)", CUSTOMERS.items())
    database.executemany("INSERT INTO orders VALUES (:order_id, :customer_id, :status, :cents)", orders)
    return orders


def find_mistakes(orders, sums):
    """Give for each check what is wrong, or None."""
    once = {order["order_id"]: order for order in orders}.values()
    paid = [order for order in once if order["status"] == "paid"]
    repeated, cancelled = len(orders) - len(once), len(once) - len(paid)
    unknown = sum(order["customer_id"] not in CUSTOMERS for order in paid)
    counted = sum(count for _region, count, _cents in sums)
    regions = {region for region, _count, _cents in sums}
    cents = sum(order["cents"] for order in paid)
    return {
        "each order counts once": f"{repeated} orders are counted twice" if repeated and counted > len(once) else None,
        "cancelled orders are left out": (
            f"{cancelled} cancelled orders are counted" if cancelled and counted > len(paid) else None
        ),
        "orders of unknown customers are kept": (
            f"{unknown} orders of unknown customers are missing" if unknown and "unknown" not in regions else None
        ),
        "revenue adds up": (
            f"the revenue is {sum(row[2] for row in sums)} cents and should be {cents}"
            if sum(row[2] for row in sums) != cents
            else None
        ),
    }


def main(path):
    with closing(sqlite3.connect(":memory:")) as database:
        with step("load the orders"):
            orders = load(database, path)
        with step("run revenue.sql"):
            sums = database.execute(Path(__file__).with_name("revenue.sql").read_text(encoding="utf-8")).fetchall()
    with Path("revenue.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("region", "orders", "cents"), *sums])
    mistakes = find_mistakes(orders, sums)
    for check, mistake in mistakes.items():
        step(check, error=mistake) if mistake else step(check)
    found = [mistake for mistake in mistakes.values() if mistake]
    return "; ".join(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])) or 0)
