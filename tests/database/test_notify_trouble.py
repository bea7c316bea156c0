"""Listening where it cannot be done, is cut off, or is broken off: a waiter goes on, and nothing is left open."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from reservable.backends import watching
from reservable.backends.database import AsyncDatabaseBackend, DatabaseBackend
from tests.database.notified import DRIVERS, MINUTE, NAME, is_async
from tests.pausing import SLACK, later, outlives, took
from tests.proxy import Proxy
from tests.server_process import free_port
from tests.servers import PostgreSQL, start_postgresql
from tests.waiting import eventually

Connect = Callable[..., Any]
Admin = psycopg.Connection[Any]


@pytest.fixture
def own_server() -> Iterator[PostgreSQL]:
    with start_postgresql() as server:
        yield server


def at(url: str, port: int) -> str:
    return make_url(url).set(port=port).render_as_string(hide_password=False)


def falls_back(waiter: Any, release: Callable[[], Any]) -> None:
    """It goes on without being told: by asking again and again, with pauses that grow."""
    with waiter.watch(NAME) as watch, later(release, 0.6):
        before = time.monotonic()
        tries = 0
        while waiter.acquire(NAME, "W", "waiter", MINUTE) is None:
            assert took(watch.pause, 5) < 0.1 + SLACK
            tries += 1
        assert time.monotonic() - before < 0.7 + SLACK
        assert 4 < tries < 40


def test_a_server_that_refuses_to_be_listened_to(
    url: str, connect: Connect, holder: DatabaseBackend, admin: Admin
) -> None:
    asked: list[bytes] = []

    def refuse(data: bytes) -> bytes:
        if b"LISTEN " in data:
            asked.append(data)
        return data.replace(b"LISTEN ", b"LISTEX ")

    with Proxy(make_url(url).port or 5432, rewrite=refuse) as proxy:
        waiter = connect(at(url, proxy.port))
        falls_back(waiter, lambda: holder.release(NAME, "H"))
        assert len(asked) == 1  # it is not asked time and again
        assert open_connections(admin) <= 1


def test_a_pooler_that_keeps_the_news_to_itself(url: str, connect: Connect, holder: DatabaseBackend) -> None:
    listened: list[bytes] = []
    greeting = b"K\x00\x00\x00\x0c"  # BackendKeyData: PgBouncer makes up one of its own

    def pooled(data: bytes) -> bytes:
        if b"LISTEN " in data:
            listened.append(data)
        start, found, rest = data.partition(greeting)
        return start + found + b"\x7f" + rest[1:] if found else data

    with Proxy(make_url(url).port or 5432, rewrite=pooled) as proxy:
        falls_back(connect(at(url, proxy.port)), lambda: holder.release(NAME, "H"))
    assert listened == []


def test_a_server_that_is_killed_frozen_and_restarted(own_server: PostgreSQL, connect: Connect) -> None:
    outlives(own_server, connect(own_server.url), NAME, MINUTE)


def test_nobody_there(url: str, connect: Connect, holder: DatabaseBackend) -> None:
    with connect(at(url, free_port())).watch(NAME) as watch:
        assert took(watch.pause, 0.2) < 0.2 + SLACK
    with Proxy(make_url(url).port or 5432) as mute:
        mute.stall()
        with connect(at(url, mute.port)).watch(NAME) as watch:
            assert took(watch.pause, 0.2) < 0.2 + SLACK


def test_a_silent_connection_is_asked_and_replaced(
    url: str, connect: Connect, holder: DatabaseBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LONGEST", 0.4)
    with Proxy(make_url(url).port or 5432) as firewall:
        waiter = connect(at(url, firewall.port))
        with waiter.watch(NAME) as watch:
            assert took(watch.pause, 1.5) >= 1.499  # it was asked meanwhile, and answered
            firewall.stall()
            assert took(watch.pause, 10) < 1 + SLACK
            firewall.resume()
            with later(lambda: holder.release(NAME, "H"), 1.5):
                eventually(lambda: took(watch.pause, 10) > 0.5, 4, 0)  # it listens again
            assert waiter.acquire(NAME, "W", "waiter", MINUTE)


def test_a_terminated_connection_is_replaced(
    url: str, waiter: Any, holder: DatabaseBackend, admin: Admin
) -> None:
    def terminate() -> None:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'waiter' AND datname = current_database()"
        )

    with waiter.watch(NAME) as watch:
        with later(terminate, 0.5):
            assert took(watch.pause, 4) < 0.6 + SLACK
        with later(lambda: holder.release(NAME, "H"), 1.5):
            eventually(lambda: took(watch.pause, 10) > 0.5, 4, 0)
        assert waiter.holder(NAME) is None


class Interrupted(BaseException):
    pass


def open_connections(admin: Admin) -> int:
    found = admin.execute(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE application_name = 'waiter' AND datname = current_database()"
    ).fetchone()
    assert found is not None
    return int(found[0])


def test_its_connection_is_closed_at_the_end_however_that_comes(
    waiter: Any, holder: DatabaseBackend, admin: Admin
) -> None:
    assert waiter.holder(NAME) is not None  # on the connection that the pool keeps
    assert open_connections(admin) == 1
    for error in (None, ValueError, Interrupted):
        with suppress(ValueError, Interrupted), waiter.watch(NAME) as watch:
            while open_connections(admin) == 1:  # on a busy machine one pause may be too short to connect
                watch.pause(0.1)
            if error is not None:
                raise error
        eventually(lambda: open_connections(admin) == 1)


@pytest.mark.parametrize("driver", [one for one in DRIVERS if not is_async(one)], indirect=True)
def test_given_up_while_it_connects_or_reads(
    url: str, connect: Connect, driver: str, holder: DatabaseBackend, admin: Admin
) -> None:
    with Proxy(make_url(url).port or 5432) as slow:
        waiter = connect(at(url, slow.port))
        assert waiter.holder(NAME) is not None
        for reading in (False, True):
            with suppress(TimeoutError), waiter.watch(NAME) as watch:
                if reading:
                    watch.pause(0.3)
                slow.stall()
                # Its time is over before the driver comes back from the mute server.
                (watch._line.left if reading else watch._line.open)(time.monotonic() + 0.1)
            slow.resume()
            eventually(lambda: open_connections(admin) == 1)


# asyncio


@pytest.fixture(params=["psycopg", "asyncpg"])
def async_url(request: pytest.FixtureRequest, url: str) -> Any:
    return make_url(url).set(drivername=f"postgresql+{request.param}")


def open_async(url: Any) -> AsyncDatabaseBackend:
    name = {"server_settings": {"application_name": "waiter"}}
    arguments = name if "asyncpg" in url.drivername else {"application_name": "waiter"}
    return AsyncDatabaseBackend(create_async_engine(url, connect_args=arguments), notify=True)


async def wait(backend: AsyncDatabaseBackend) -> None:
    async with backend.watch(NAME) as watch:
        while True:
            await watch.pause(10)


def test_a_cancelled_pause_closes_its_connection(
    async_url: Any, holder: DatabaseBackend, admin: Admin
) -> None:
    async def cancel() -> None:
        backend = open_async(async_url)
        steps = [0, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.004, 0.006, 0.008, 0.012, 0.016, 0.02, 0.03]
        for after in steps * 8:
            task = asyncio.create_task(wait(backend))
            await asyncio.sleep(after)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 5)
        await backend.close()
        await asyncio.to_thread(eventually, lambda: open_connections(admin) == 0)

    asyncio.run(cancel())
    gc.collect()


def test_a_pause_that_was_cut_off_is_followed_by_one_that_listens(
    async_url: Any, holder: DatabaseBackend
) -> None:
    async def cut_off() -> None:
        backend = open_async(async_url)
        async with backend.watch(NAME) as watch:
            for limit in (0.0001, 0.0005, 0.002, 0.005, 0.01, 0.2):
                with suppress(TimeoutError):
                    await asyncio.wait_for(watch.pause(10), limit)
            with later(lambda: holder.release(NAME, "H"), 0.3):
                before = time.monotonic()
                while await backend.holder(NAME) is not None:
                    await watch.pause(10)
                assert time.monotonic() - before < 0.3 + SLACK
        await backend.close()

    asyncio.run(cut_off())


def test_one_backend_in_one_loop_after_the_other(
    async_url: Any, holder: DatabaseBackend, admin: Admin
) -> None:
    backend = open_async(async_url)

    async def pause() -> None:
        async with backend.watch(NAME) as watch:
            assert await asyncio.to_thread(eventually, lambda: True)
            await watch.pause(0.2)

    for _ in range(3):
        asyncio.run(pause())
    eventually(lambda: open_connections(admin) == 0)


def test_a_loop_that_is_closed_over_a_watch(async_url: Any, holder: DatabaseBackend, admin: Admin) -> None:
    backend = open_async(async_url)
    left_open = []

    async def leave() -> None:
        watch = backend.watch(NAME)
        await watch.pause(0.3)
        left_open.append(watch)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    loop.close()

    async def again() -> None:
        assert await backend.holder(NAME) is not None
        await backend.close()

    asyncio.run(again())
    eventually(lambda: open_connections(admin) == 0)
    left_open.clear()
    gc.collect()
