"""The asyncio backend of databases: which engines it takes, what its connections are told, and what errors mean."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool
from sqlalchemy.util import greenlet_spawn

from reservable.backends.asynchronous import AsyncBackend
from reservable.backends.database import AsyncDatabaseBackend, DatabaseBackend
from reservable.errors import BackendError, ConfigurationError
from reservable.grants import Released
from reservable.plans import Pause
from reservable.retrying import Contended
from tests.asynchronous.conftest import DRIVERS, Place
from tests.waiting import eventually

MINUTE = timedelta(minutes=1)

SQL_DRIVERS = [driver for driver, kind in DRIVERS.items() if kind != "redis"]


@pytest.fixture(params=SQL_DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kind(driver: str) -> str:
    return DRIVERS[driver]


@pytest.fixture
def url(kind: str, fresh_database: Callable[[str], str]) -> str:
    return fresh_database(kind)


@pytest.fixture
def engine(url: str, driver: str) -> AsyncEngine:
    """Never connected by the tests themselves."""
    return create_async_engine(make_url(url).set(drivername=driver))


def run_in(backend: AsyncDatabaseBackend, work: Callable[[], Any]) -> Any:
    """What blocking code within a greenlet returns; the backend is closed after it."""

    async def main() -> Any:
        try:
            return await greenlet_spawn(work)
        finally:
            await backend.close()

    return asyncio.run(main())


def asked(backend: AsyncDatabaseBackend, question: str) -> Any:
    """The answer to a question about a connection of the library's own."""

    def work(driver: Any) -> Any:
        cursor = driver.cursor()
        cursor.execute(question)
        answer = cursor.fetchone()[0]
        cursor.close()
        return answer

    return run_in(backend, lambda: backend.connections.lend(work))


def test_it_is_an_asyncio_backend(engine: AsyncEngine) -> None:
    backend = AsyncDatabaseBackend(engine, "shop:", table="held")
    assert isinstance(backend, AsyncBackend)
    assert backend.asynchronous
    assert backend.prefix == "shop:"
    assert backend.capabilities == backend.within.capabilities
    assert backend.capabilities.joinable
    assert backend.table.name == "held"
    assert backend.is_sqlite is (engine.dialect.name == "sqlite")
    assert "held" in repr(backend)
    assert "AsyncDatabaseBackend" in repr(backend)


def test_the_engine_inside_an_async_engine_will_do(engine: AsyncEngine) -> None:
    async def main() -> None:
        backend = AsyncDatabaseBackend(engine.sync_engine)
        assert await backend.acquire("n", "T", "o", MINUTE)
        await backend.close()

    asyncio.run(main())


def test_blocking_code_within_a_greenlet_has_the_same_reservations(engine: AsyncEngine) -> None:
    async def main() -> None:
        backend = AsyncDatabaseBackend(engine)
        assert await backend.acquire("n", "T", "o", MINUTE)
        async with engine.connect() as connection:
            assert await connection.run_sync(lambda _: backend.within.release("n", "T")) is Released.YES
        assert await backend.holder("n") is None
        await backend.close()
        await engine.dispose()

    asyncio.run(main())


def test_a_pool_that_keeps_no_connections_is_followed(url: str, driver: str) -> None:
    async def main() -> None:
        parsed = make_url(url).set(drivername=driver)
        backend = AsyncDatabaseBackend(create_async_engine(parsed, poolclass=NullPool))
        for _ in range(3):
            assert await backend.acquire("n", "T", "o", MINUTE)
            assert await backend.release("n", "T") is Released.YES

    asyncio.run(main())


def test_a_pause_lets_the_loop_go_on(engine: AsyncEngine) -> None:
    async def main() -> None:
        backend = AsyncDatabaseBackend(engine)
        started = time.monotonic()
        pauses = [greenlet_spawn(backend.within.perform, Pause(0.2)) for _ in range(20)]
        await asyncio.gather(*pauses, *(backend.perform(Pause(0.2)) for _ in range(20)))
        assert 0.2 <= time.monotonic() - started < 2

    asyncio.run(main())


def test_an_engine_with_a_blocking_driver_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="create_async_engine"):
        AsyncDatabaseBackend(create_engine(url))


def test_the_blocking_backend_refuses_an_engine_with_an_asyncio_driver(engine: AsyncEngine) -> None:
    given: list[Any] = [engine, engine.sync_engine]
    for one in given:
        with pytest.raises(ConfigurationError, match="AsyncDatabaseBackend"):
            DatabaseBackend(one)


def test_a_database_in_memory_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="private"):
        AsyncDatabaseBackend(create_async_engine("sqlite+aiosqlite://"))


def test_connections_are_told_how_long_to_wait(engine: AsyncEngine, kind: str) -> None:
    question, answer = {
        "sqlite": ("PRAGMA busy_timeout", 20),
        "postgresql": ("SHOW transaction_isolation", "read committed"),
        "mariadb": (
            "SELECT concat(@@innodb_lock_wait_timeout, @@tx_isolation, @@autocommit + 0)",
            "5READ-COMMITTED1",
        ),
    }[kind]
    assert asked(AsyncDatabaseBackend(engine), question) == answer


def test_a_lock_that_is_not_granted_in_time_is_worth_another_try(
    engine: AsyncEngine, url: str, kind: str, make_engine: Callable[..., Engine]
) -> None:
    soon = {"sqlite": "SELECT 1", "postgresql": "SET lock_timeout = '10ms'"}.get(
        kind, "SET SESSION innodb_lock_wait_timeout = 1"
    )
    backend = AsyncDatabaseBackend(engine)

    def work(driver: Any) -> None:
        cursor = driver.cursor()
        cursor.execute(soon)
        cursor.execute("UPDATE reservations SET owner = 'x'")

    async def main() -> None:
        assert await backend.acquire("n", "T", "o", MINUTE)
        with make_engine(url).begin() as connection:
            connection.execute(text("UPDATE reservations SET owner = 'the other'"))
            with pytest.raises(Contended):
                await greenlet_spawn(backend.connections.lend, work)
        holder = await backend.holder("n")
        assert holder is not None
        assert holder.owner == "the other"
        await backend.close()

    asyncio.run(main())


def test_a_write_of_the_callers_own_that_locks_the_file_is_told(
    fresh_database: Callable[[str], str], make_engine: Callable[..., Engine]
) -> None:
    url = fresh_database("sqlite")
    backend = AsyncDatabaseBackend(create_async_engine(url.replace("sqlite:", "sqlite+aiosqlite:")))
    blocking: list[bool] = []

    def blocks() -> bool:
        blocking.append(True)
        return True

    async def main() -> None:
        assert await backend.acquire("n", "T", "o", MINUTE)
        with make_engine(url).begin() as connection:
            connection.execute(text("UPDATE reservations SET owner = 'the other'"))
            with pytest.raises(BackendError, match="own uncommitted write"):
                await backend.beside(blocks).acquire("m", "T", "o", MINUTE)
        assert await backend.acquire("m", "T", "o", MINUTE)
        await backend.close()

    asyncio.run(main())
    assert blocking


def test_closing_where_nothing_can_be_awaited_closes_the_connections_of_every_loop(place: Place) -> None:
    backend = place.make()
    assert isinstance(backend, AsyncDatabaseBackend)
    closed, used = threading.Event(), threading.Event()

    async def running() -> None:
        await backend.holder("n")
        used.set()
        await asyncio.to_thread(closed.wait)
        await asyncio.to_thread(eventually, lambda: place.connections() == 0)
        assert await backend.acquire("n", "T", "o", MINUTE)

    with ThreadPoolExecutor(1) as thread:
        work = thread.submit(asyncio.run, running())
        used.wait()
        with closing(asyncio.new_event_loop()) as still:
            still.run_until_complete(backend.holder("n"))
            backend.within.close()
        closed.set()
        work.result()
    eventually(lambda: place.connections() == 0)
