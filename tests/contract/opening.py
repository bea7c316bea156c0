"""An SQLite store as the contract uses it, in any process: whole, but for the waiting for the disk."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, create_engine, event

from reservable.backends.database import DatabaseBackend


def sqlite_engine(url: str) -> Engine:
    engine = create_engine(url)

    @event.listens_for(engine, "connect")
    def hurry(driver: Any, _: object) -> None:
        driver.execute("PRAGMA synchronous = OFF")

    return engine


def open_sqlite(url: str, table: str) -> DatabaseBackend:
    return DatabaseBackend(sqlite_engine(url), table=table)
