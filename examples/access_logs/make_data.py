"""Makes a web server's access log and the list of its pages in data/, as dirty as such logs are; always the same.

Run it again only to change the data: `python examples/access_logs/make_data.py`. What comes out is committed.
The addresses come from the ranges that RFC 5737 keeps free for documentation.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path

DATA = Path(__file__).parent / "data"
PAGES = {
    "/": "home",
    "/beans": "catalogue",
    "/beans/espresso": "catalogue",
    "/beans/filter": "catalogue",
    "/grinders": "catalogue",
    "/cart": "checkout",
    "/checkout": "checkout",
    "/blog/water-temperature": "blog",
    "/blog/how-to-grind": "blog",
}
UNKNOWN_PATHS = ("/wp-login.php", "/.env", "/old-shop/index.html")
BROWSERS = ("Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5) Safari/604.1")
CRAWLER = "ExampleBot/2.1 (+https://bot.example/about)"
REQUEST_COUNT = 2400
BROKEN_LINES = ("203.0.113.9 - - [04/Mar/2025:10:1", "", '198.51.100.3 - - "GET / HTTP/1.1" 400')


def main() -> None:
    """Write the log, in the order of its requests, and the pages with their sections."""
    chance = random.Random(42)
    DATA.mkdir(exist_ok=True)
    pages = "".join(f"{path}\t{section}\n" for path, section in PAGES.items())
    (DATA / "pages.tsv").write_text(pages, encoding="utf-8")
    moment = datetime(2025, 3, 3)  # noqa: DTZ001 - the log says +0000
    lines = []
    for _ in range(REQUEST_COUNT):
        moment += timedelta(seconds=chance.expovariate(1 / 150))
        lines.append(make_line(chance, moment))
        if chance.random() < 0.004:
            lines.append(chance.choice(BROKEN_LINES))
    (DATA / "access.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def make_line(chance: random.Random, moment: datetime) -> str:
    """One request in the combined log format."""
    path = chance.choices(list(PAGES), [30, 14, 12, 10, 8, 6, 4, 9, 7])[0]
    status = chance.choices([200, 304, 500], [90, 8, 2])[0]
    if chance.random() < 0.04:
        path, status = chance.choice(UNKNOWN_PATHS), 404
    if chance.random() < 0.15:
        path += "?utm_source=letter"
    agent = CRAWLER if chance.random() < 0.1 else chance.choice(BROWSERS)
    host = f"{chance.choice(['192.0.2', '198.51.100', '203.0.113'])}.{chance.randrange(1, 255)}"
    size = "-" if status == 304 else str(chance.randrange(400, 60000))
    return f'{host} - - [{moment:%d/%b/%Y:%H:%M:%S} +0000] "GET {path} HTTP/1.1" {status} {size} "-" "{agent}"'


if __name__ == "__main__":
    main()
