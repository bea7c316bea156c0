"""Every store that a server or a file keeps, through every asyncio driver."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import redis
from sqlalchemy import NullPool, create_engine, make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from reservable.backends.asynchronous import AsyncBackend
from reservable.backends.database import AsyncDatabaseBackend
from reservable.backends.redis.connect import async_from_url

DRIVERS = {
    "redis": "redis",
    "sqlite+aiosqlite": "sqlite",
    "postgresql+asyncpg": "postgresql",
    "postgresql+psycopg": "postgresql",
    "mariadb+aiomysql": "mariadb",
    "mariadb+asyncmy": "mariadb",
}
"""The kind of store that each driver reaches."""

COUNTING = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE datname = :database",
    "mariadb": "SELECT count(*) FROM information_schema.processlist WHERE db = :database",
}


@dataclass(frozen=True)
class Place:
    """A fresh store."""

    driver: str
    make: Callable[[], AsyncBackend]
    """A backend on it."""
    connections: Callable[[], int]
    """How many connections to it are open, by the server's word; SQLite's, by the threads that aiosqlite gives them."""


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(driver: str, fresh_database: Callable[[str], str]) -> Iterator[Place]:
    kind = DRIVERS[driver]
    url = fresh_database(kind)
    with ExitStack() as stack:
        if kind == "redis":
            client = stack.enter_context(redis.Redis.from_url(url))
            yield Place(
                driver,
                lambda: async_from_url(url + "?client_name=loops"),
                lambda: sum(one["name"] == "loops" for one in client.client_list()),
            )
            return
        parsed = make_url(url).set(drivername=driver)
        yield Place(
            driver,
            lambda: AsyncDatabaseBackend(create_async_engine(parsed)),
            _threads if kind == "sqlite" else lambda: _counted(url, COUNTING[kind]),
        )


@pytest.fixture
def backend(place: Place) -> AsyncBackend:
    return place.make()


def _threads() -> int:
    return sum("_connection_worker_thread" in thread.name for thread in threading.enumerate())


def _counted(url: str, statement: str) -> int:
    address: Any = make_url(url)
    elsewhere = address.set(database="postgres" if address.get_backend_name() == "postgresql" else "mysql")
    engine = create_engine(elsewhere, poolclass=NullPool)
    with engine.connect() as connection:
        return int(connection.scalar(text(statement), {"database": address.database}) or 0)
