"""Backends that tell waiters, by every driver that can listen, in the form of blocking ones."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing
from datetime import timedelta
from typing import Any

from sqlalchemy import create_engine, make_url
from sqlalchemy.ext.asyncio import create_async_engine

from reservable.backends.database import AsyncDatabaseBackend, DatabaseBackend
from reservable.testing.colours import LoopThread
from tests.redis.colours import Blocked

NAME = "videos:1:download"
MINUTE = timedelta(minutes=1)

DRIVERS = ("psycopg", "psycopg2", "psycopg in asyncio", "asyncpg")


def open_by(
    driver: str, url: str, loop: LoopThread | None = None, **options: Any
) -> AbstractContextManager[Any]:
    """A backend with `notify` on the database; closed at the end of the block."""
    address = make_url(url).set(drivername=f"postgresql+{driver.split(maxsplit=1)[0]}")
    name = {"server_settings": {"application_name": "waiter"}}
    arguments = name if driver == "asyncpg" else {"application_name": "waiter"}
    if loop is None:
        engine = create_engine(address, connect_args=arguments)
        return closing(DatabaseBackend(engine, notify=True, **options))
    async_engine = create_async_engine(address, connect_args=arguments)
    return closing(Blocked(AsyncDatabaseBackend(async_engine, notify=True, **options), loop))


def is_async(driver: str) -> bool:
    return driver in DRIVERS[2:]
