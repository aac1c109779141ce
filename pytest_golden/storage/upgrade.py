"""Brings a database to the newest version of our tables. Imports Alembic: loaded only when there is something to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config

if TYPE_CHECKING:
    from sqlalchemy import Connection

MIGRATIONS = Path(__file__).with_name("migrations")


def upgrade(connection: Connection) -> None:
    """Run the migrations that are missing, within the transaction that the connection is in."""
    command.upgrade(make_config(connection), "head")


def make_config(connection: Connection | None = None) -> Config:
    """Give Alembic's configuration; `migrations/env.py` finds the connection in it."""
    config = Config(attributes={"connection": connection})
    # The configuration is an ini file to Alembic: a percent sign in a path would begin a reference.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config
