"""What a connection of the library's own is told before its first use."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Dialect

from reservable.retrying import PATIENCE


def prepare(dialect: Dialect, driver: Any) -> None:
    """Autocommit, and no wait that outlasts our patience, for a driver's connection."""
    dialect.set_isolation_level(driver, "AUTOCOMMIT")
    cursor = driver.cursor()
    try:
        for statement in _settings(dialect.name):
            cursor.execute(statement)
    finally:
        cursor.close()


def _settings(dialect: str) -> list[str]:
    if dialect == "postgresql":
        return []  # a setting would stay behind in a pooler's connection: see `Statements`
    if dialect == "sqlite":
        return ["PRAGMA busy_timeout = 20"]  # short: longer waits are ours, with random pauses
    return [
        f"SET SESSION innodb_lock_wait_timeout = {PATIENCE:.0f}",
        # A listener of the user's may have stopped this session's clock (SET TIMESTAMP), as replaying tools do.
        "SET SESSION timestamp = DEFAULT",
        # An INSERT ... SELECT locks what it reads at REPEATABLE READ.
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    ]
