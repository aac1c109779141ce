"""Make the pictures of the papers, in docs/images/, from gates that really run: `python docs/screenshots.py`.

It sets up a small shop's workspace in a temporary folder, runs its gates with commits between them, breaks it, and
photographs the terminal and the pages of `golden serve`. Wants git, a Chromium, the `serve` extra and the test dependencies.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from pytest_golden.journal.service import Journal
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

IMAGES = Path(__file__).parent / "images"
WIDTH, HEIGHT = 1200, 800
COLUMNS = 98
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_SHOWN_HOME = "/home/you/shop"
# Without the letters that rich would have a browser fetch from elsewhere.
_SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font: bold 16px system-ui, sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""

_FILES = {
    "golden_projects.yaml": """\
version: 1
golden_projects:
  - name: sales_totals
    path: sales/report.py
    description: The orders of the shop, added up by day
    outputs: [{path: totals.csv, key: day}]
    unexpected_files: fail
  - name: refuses_negative_amounts
    path: sales/report.py
    args: [negative.csv]
    description: A batch with a negative amount must be stopped
    expected_outcome: "specific_error:negative amount -3.00"
  - name: stock_levels
    path: stock/levels.py
    description: What came in, less what went out, by article
    outputs: [{path: levels.csv, key: article}]
  - name: daily_letter
    path: letter/letter.sh
    description: The letter that goes out each morning
    outputs: [{path: letter.txt}]
""",
    "sales/orders.csv": "number,day,amount\n"
    + "".join(f"{1000 + at},2026-03-{1 + at % 28:02d},{5 + at % 37}.{at % 100:02d}\n" for at in range(4000)),
    "sales/negative.csv": "number,day,amount\n1004,2026-03-03,8.00\n1005,2026-03-03,-3.00\n",
    "sales/report.py": """\
import csv
import sys
from pathlib import Path

from pytest_golden.steps import step

source = Path(sys.argv[1] if len(sys.argv) > 1 else "orders.csv")

with step("read orders") as reading:
    with source.open() as file:
        orders = list(csv.DictReader(file))
    reading.note(rows=len(orders))
    print(f"{len(orders)} orders of {source}")

with step("check amounts"):
    for order in orders:
        if float(order["amount"]) < 0:
            sys.exit(f"order {order['number']}: negative amount {order['amount']}")

with step("add up by day"):
    totals = {}
    for order in orders:
        totals[order["day"]] = totals.get(order["day"], 0.0) + float(order["amount"])

with step("write totals"):
    rows = [f"{day},{total:.2f}" for day, total in sorted(totals.items())]
    Path("totals.csv").write_text("\\n".join(["day,total", *rows]) + "\\n")
    print(f"\\x1b[32m{len(rows)} days\\x1b[0m written to totals.csv")
""",
    "stock/moves.csv": "article,pieces\n" + "".join(f"A{at % 9},{at % 13 - 3}\n" for at in range(900)),
    "stock/levels.py": """\
import csv
from collections import Counter
from pathlib import Path

from pytest_golden.steps import step

with step("read moves"):
    moves = list(csv.DictReader(open("moves.csv")))
with step("sum by article"):
    levels = Counter()
    for move in moves:
        levels[move["article"]] += int(move["pieces"])
with step("write levels"):
    rows = [f"{article},{pieces}" for article, pieces in sorted(levels.items())]
    Path("levels.csv").write_text("\\n".join(["article,pieces", *rows]) + "\\n")
print(f"{len(rows)} articles")
""",
    "letter/letter.sh": "printf 'Good morning,\\n\\nthe shop is open from nine.\\n' > letter.txt\necho 1 letter\n",
}


def main() -> None:
    """Run the gates and take the pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        shop = Path(folder, "shop")
        green, red = _live_through(shop)
        _draw_terminal(green, shop, IMAGES / "terminal-green.svg")
        _draw_terminal(red, shop, IMAGES / "terminal-red.svg")
        with _serving(shop) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=_find_browser(), args=["--no-sandbox"])
            _photograph(browser, address)
            browser.close()


def _live_through(shop: Path) -> tuple[str, str]:
    """Let the shop have a past of gates, agents and a mistake that was mended; give its last green and its last red gate."""
    for name, text in _FILES.items():
        path = shop / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (shop / ".gitignore").write_text(".golden/\n__pycache__/\n")
    _git(shop, "init", "--quiet", "--initial-branch", "main")
    _commit(shop, "A shop")
    _gate(shop, "--golden-update")
    _commit(shop, "Accept what it produces")
    for _ in range(5):
        _gate(shop)
    report = shop / "sales/report.py"
    _change(report, 'order["day"]', 'order["date"]')
    _gate(shop)
    _change(report, 'order["date"]', 'order["day"]')
    _note_work(shop / ".golden/golden.db")
    for _ in range(3):
        _gate(shop)
    green = _gate(shop)
    _change(report, 'float(order["amount"])\n\nwith', 'round(float(order["amount"]), 1)\n\nwith')
    _change(shop / "letter/letter.sh", "nine", "eight")
    return green, _gate(shop)


def _note_work(path: Path) -> None:
    """Note what agents do in this shop, and the news of it."""
    with Store.open(path) as store:
        journal = Journal(store)
        deploy = journal.log_intent("Move the orders to the new schema", "migration", agent_id="builder")
        quiet = {"description": "no alarm about orders for a day", "polarity": "negative", "expires_minutes": 1440}
        asked = {"description": "the morning report arrives", "match_hint": {"report": "morning"}, "critical": True}
        journal.log_outcome(deploy.id, "success", "4,000 rows moved, none lost", expectations=[quiet, asked])
        journal.add_signal("mail", "positive", "The morning report arrived", data={"report": "morning"})
        tried = journal.log_intent("Speed up the totals with a window function", "change", agent_id="builder")
        journal.log_outcome(tried.id, "failure", "the gate stayed red: two days were counted twice")
        kept = journal.log_intent("Review the change of the totals", "review", agent_id="reviewer")
        journal.log_outcome(kept.id, "partial", "right, but without a test")
        journal.log_intent("Backfill the stock of March", "backfill", agent_id="nightly")


def _change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    changed = text.replace(old, new)
    if changed == text:
        sys.exit(f"{path.name} has no {old!r} to change")
    path.write_text(changed)


def _commit(shop: Path, message: str) -> None:
    _git(shop, "add", "--all")
    _git(shop, "commit", "--quiet", "--message", message)


def _git(shop: Path, *words: str) -> None:
    who = ("-c", "user.name=you", "-c", "user.email=you@example.org")
    subprocess.run(["git", *who, *words], cwd=shop, check=True)


def _gate(shop: Path, *words: str) -> str:
    told = [sys.executable, "-m", "pytest", "--golden", "--color=yes", "-p", "no:cacheprovider", *words]
    # Only this plugin, and not in CI: what is photographed is what a person sees.
    about = {"COLUMNS": str(COLUMNS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p golden_projects"}
    kept = {name: value for name, value in os.environ.items() if name not in {"CI", "GITHUB_ACTIONS", "NO_COLOR"}}
    ran = subprocess.run(told, cwd=shop, env={**kept, **about}, capture_output=True, text=True, check=False)
    if ran.returncode > 1:
        sys.exit(ran.stdout + ran.stderr)
    return ran.stdout


def _draw_terminal(output: str, shop: Path, path: Path) -> None:
    told = output.replace(str(shop), _SHOWN_HOME).rstrip()
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(f"\x1b[1m$ pytest --golden\x1b[0m\n{told}"), soft_wrap=False)
    path.write_text(console.export_svg(title="pytest --golden", code_format=_SVG, unique_id=path.stem))


@contextmanager
def _serving(shop: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "pytest_golden", "serve", "--port", "0"]
    token = secrets.token_urlsafe()
    environment = {**os.environ, "GOLDEN_SERVE_TOKEN": token}
    with subprocess.Popen(command, cwd=shop, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            address = server.stdout.readline().strip() if server.stdout else ""
            yield f"{address}/sign-in?token={token}"
        finally:
            server.terminate()


def _photograph(browser: Browser, address: str) -> None:
    light = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", timezone_id="UTC")
    light.goto(address)
    light.locator("tbody th a").first.click()
    # What the machine was is further down, and of no interest.
    light.screenshot(path=IMAGES / "run.png", clip={"x": 0, "y": 0, "width": WIDTH, "height": 480})
    light.get_by_role("link", name="sales_totals", exact=True).click()
    light.screenshot(path=IMAGES / "result.png")
    dark = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="dark", timezone_id="UTC")
    dark.goto(address)
    dark.goto(light.url)
    dark.locator("h1 a").click()
    dark.screenshot(path=IMAGES / "project.png")
    dark.get_by_role("link", name="Journal", exact=True).click()
    dark.get_by_label("Agent").select_option("builder")
    dark.wait_for_url("**agent=builder**")
    dark.screenshot(path=IMAGES / "journal.png", clip={"x": 0, "y": 0, "width": WIDTH, "height": 450})


def _find_browser() -> str:
    for name in _BROWSERS:
        if found := shutil.which(name):
            return found
    sys.exit(f"there is no {re.sub(', (?=[^,]*$)', ' or ', ', '.join(_BROWSERS))} here")


if __name__ == "__main__":
    main()
