"""Stores as the contract uses them, in any process."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from reservable.backends.base import Backend
from reservable.backends.database import AsyncDatabaseBackend, DatabaseBackend
from reservable.backends.redis.connect import async_from_url
from reservable.testing import blocking


def sqlite_engine(url: str) -> Engine:
    """Whole, but for the waiting for the disk."""
    engine = create_engine(url)
    event.listen(engine, "connect", _hurry)
    return engine


def open_sqlite(url: str, table: str) -> DatabaseBackend:
    return DatabaseBackend(sqlite_engine(url), table=table)


def async_engine(url: str) -> AsyncEngine:
    engine = create_async_engine(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine.sync_engine, "connect", _hurry)
    return engine


def open_async_database(url: str, table: str) -> Backend:
    return blocking(AsyncDatabaseBackend(async_engine(url), table=table))


def open_async_redis(url: str) -> Backend:
    return blocking(async_from_url(url))


def _hurry(driver: Any, _: object) -> None:
    driver.execute("PRAGMA synchronous = OFF")
