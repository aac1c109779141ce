"""Makes the shop's exports in data/, dirt included; always the same, so that the results can be checked.

Run it again only to change the data: `python examples/orders/make_data.py`. What comes out is committed.
"""

from __future__ import annotations

import csv
import random
from datetime import date, timedelta
from pathlib import Path

DATA = Path(__file__).parent / "data"
REGIONS = {"North": 0.35, "South": 0.25, "East": 0.22, "West": 0.18}
CATEGORIES = ("Coffee", "Tea", "Equipment", "Accessories")
STATUSES = ("shipped", "delivered", "cancelled", "returned")
CUSTOMER_COUNT = 180
PRODUCT_COUNT = 40
ORDER_COUNT = 1500


def main() -> None:
    """Write customers, products, orders and a payment batch that must be refused."""
    chance = random.Random(20250301)
    DATA.mkdir(exist_ok=True)
    customers = make_customers(chance)
    products = make_products(chance)
    orders = make_orders(chance, customers, products)
    write("customers.csv", customers)
    write("products.csv", products)
    write("orders.csv", orders)
    write("payments.csv", make_payments(chance, orders))


def make_customers(chance: random.Random) -> list[dict[str, str]]:
    """One row a customer; the region's spelling depends on who typed it."""
    rows = []
    for number in range(1, CUSTOMER_COUNT + 1):
        region = chance.choices(list(REGIONS), list(REGIONS.values()))[0]
        spelled = chance.choice([region, region, region, region.upper(), f" {region}", f"{region} ", region.lower()])
        signed_up = date(2022, 1, 1) + timedelta(days=chance.randrange(1000))
        rows.append({"customer_id": f"C{number:04d}", "region": spelled, "signed_up": signed_up.isoformat()})
    return rows


def make_products(chance: random.Random) -> list[dict[str, str]]:
    """One row a product, with its list price in euros."""
    return [
        {
            "sku": f"{category[:3].upper()}-{number:03d}",
            "category": category,
            "list_price": f"{chance.choice([4.5, 6.9, 8.9, 12.5, 18.0, 24.9, 49.0, 129.0]):.2f}",
        }
        for number in range(1, PRODUCT_COUNT + 1)
        for category in [CATEGORIES[number % len(CATEGORIES)]]
    ]


def make_orders(
    chance: random.Random, customers: list[dict[str, str]], products: list[dict[str, str]]
) -> list[dict[str, str]]:
    """Order lines in the order of their export; changed orders are exported again, with a later `updated_at`."""
    rows = []
    for number in range(1, ORDER_COUNT + 1):
        product = chance.choice(products)
        ordered = date(2025, 1, 1) + timedelta(days=chance.randrange(90))
        customer = chance.choice(customers)["customer_id"] if chance.random() > 0.01 else f"C9{number:03d}"
        row = {
            "order_id": f"O{number:05d}",
            "customer_id": customer,
            "sku": product["sku"] if chance.random() > 0.05 else f" {product['sku'].lower()}",
            "ordered_on": write_date(chance, ordered),
            "quantity": str(chance.choice([1, 1, 1, 2, 2, 3, 5, 10])),
            "unit_price": write_price(chance, product["list_price"]),
            "status": chance.choices(STATUSES, [30, 60, 6, 4])[0],
            "updated_at": f"{ordered.isoformat()} {chance.randrange(8, 20):02d}:{chance.randrange(60):02d}:00",
        }
        rows.append(row)
        if chance.random() < 0.06:
            rows.append(row | {"status": "delivered", "updated_at": f"{ordered + timedelta(days=4)} 09:30:00"})
        if chance.random() < 0.02:
            rows.append(dict(row))
    return rows


def write_date(chance: random.Random, day: date) -> str:
    """The web shop writes ISO dates, the tills day/month/year."""
    return day.isoformat() if chance.random() > 0.2 else day.strftime("%d/%m/%Y")


def write_price(chance: random.Random, price: str) -> str:
    """The tills write a decimal comma, some rows have a sign, a few have no price at all."""
    spelled = (price, price, price, price.replace(".", ","), f"{price} EUR", f" {price}")
    return chance.choice(spelled) if chance.random() > 0.015 else ""


def make_payments(chance: random.Random, orders: list[dict[str, str]]) -> list[dict[str, str]]:
    """A batch of payments in which three refunds came in as negative payments."""
    batch = chance.sample(orders, 300)
    rows = [
        {"payment_id": f"P{number:05d}", "order_id": order["order_id"], "amount": f"{chance.uniform(4, 400):.2f}"}
        for number, order in enumerate(batch, 1)
    ]
    for number in (41, 162, 288):
        rows[number]["amount"] = f"-{rows[number]['amount']}"
    return rows


def write(name: str, rows: list[dict[str, str]]) -> None:
    """Write a table as CSV."""
    with (DATA / name).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
