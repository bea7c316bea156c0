"""One store for blocking code and for asyncio in one process: one configuration, one row, one holder."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio
from sqlalchemy import URL, create_engine, inspect
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from reservable import (
    AsyncReservation,
    ConfigurationError,
    InvalidHandle,
    NotSupported,
    Reservation,
    ReservationLost,
    areservation,
    configure,
    first_reserved,
    reservation,
)
from reservable.backends.database import engines
from reservable.backends.memory import MemoryBackend
from tests.sqlalchemy.asynchronous.conftest import AsyncPlace
from tests.sqlalchemy.asynchronous.test_finding import ALL
from tests.sqlalchemy.models import Video


@pytest.mark.parametrize("given", ["blocking", "asyncio"])
def test_one_url_serves_both(shared_place: AsyncPlace, given: str):
    urls = {"blocking": shared_place.blocking_url, "asyncio": shared_place.url}
    configure(shared_place.where or urls[given])
    held = reservation("nightly", 600)
    assert held.acquire()

    async def story() -> None:
        theirs = areservation("nightly", 600)
        assert await theirs.acquire() is False
        holder = await theirs.holder()
        assert holder is not None
        assert holder.fence == held.fence
        assert held.name == theirs.name
        assert await AsyncReservation.loads(held.dumps()).release() is True
        assert await theirs.acquire() is True
        assert Reservation.loads(theirs.dumps()).release() is True

    asyncio.run(story())


def test_a_model_is_used_from_both_kinds_of_session(shared_place: AsyncPlace):
    engine = create_engine(shared_place.blocking_url)

    async def story(session: AsyncSession, video: Video) -> None:
        assert await video.areserve("download", 600)
        with Session(engine) as blocking:
            same = blocking.get_one(Video, inspect(video).identity)
            assert await same.ais_reserved("download")
            assert same.is_reserved("download") is True
            assert same.reserve("download") is False
            assert first_reserved(blocking, ALL, "download") is None
        assert await video.arelease("download")

    shared_place.tell(story)
    engine.dispose()


def test_what_asyncio_reserved_blocking_code_releases_and_the_other_way_round(shared_place: AsyncPlace):
    configure(shared_place.where or shared_place.blocking_url)

    async def story(session: AsyncSession, video: Video) -> None:
        assert await video.areserve("download", 600)
        assert video.release("download") is True
        assert not video.areservation("download").held
        assert video.reserve("download", 600)
        assert video.reservation("download").held
        assert video.areservation("download").held
        assert await video.arelease("download") is True
        assert not video.is_reserved("download")

    shared_place.tell(story)


def test_the_handles_of_both_colours_on_one_grant_see_its_end(shared_place: AsyncPlace):
    configure(shared_place.where or shared_place.blocking_url)

    async def story(session: AsyncSession, video: Video) -> None:
        awaited = video.areservation("download", 600)
        assert await awaited.acquire()
        blocking = video.reservation("download")
        assert blocking.extend(60) is True
        assert 0 < awaited.remaining <= 60
        assert blocking.release() is True
        assert not awaited.held
        assert awaited.token is None
        assert not awaited.lost.is_set()
        async with awaited:
            blocking = video.reservation("download")
            assert await awaited.break_()
            assert blocking.extend(60) is False
            assert blocking.lost.is_set()
            assert awaited.lost.is_set()
            assert await awaited.acquire()  # nobody holds it
            awaited_again = video.areservation("download")
            assert awaited_again is awaited
            assert video.reservation("download").release() is True
            assert await video.areserve("download")
            assert await video.arelease("download")

    with pytest.raises(ReservationLost):
        shared_place.tell(story)


def test_two_loops_one_after_the_other_and_loops_in_threads(place: AsyncPlace):
    configure(place.where or place.blocking_url)

    async def story(name: str) -> int:
        count = 0
        for _ in range(5):
            async with areservation(name, 60):
                count += 1
            async with areservation("shared", 60, wait=30):
                count += 1
        return count

    assert [asyncio.run(story("a")) for _ in range(3)] == [10, 10, 10]
    counts: list[int] = []
    threads = [
        threading.Thread(target=lambda n=number: counts.append(asyncio.run(story(f"n{n}"))))
        for number in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert counts == [10, 10, 10]


def test_blocking_calls_in_the_way_of_the_loop_are_refused_before_anything_happened(shared_place: AsyncPlace):
    if shared_place.where is not None:  # a store that is configured for blocking code may be used by it
        configure(redis.asyncio.Redis.from_url(shared_place.where))

    async def story(session: AsyncSession, video: Video) -> None:
        for call in (video.reserve, video.release, video.is_reserved, video.reservation):
            with pytest.raises(NotSupported, match=r"areserve.*await|await.*areserve"):
                call("download")
        assert not await video.ais_reserved("download")
        assert await video.areserve("download")

    shared_place.tell(story)


def test_what_was_loaded_by_asyncio_is_used_by_blocking_code_afterwards(shared_place: AsyncPlace):
    kept: list[Video] = []

    async def story(session: AsyncSession, video: Video) -> None:
        kept.append(video)
        session.expunge(video)

    shared_place.tell(story)
    configure(shared_place.where or shared_place.url)
    assert kept[0].reserve("download")
    assert kept[0].release("download")


def test_an_engine_or_a_client_of_asyncio_serves_both(
    shared_place: AsyncPlace, fresh_database: Callable[[str], str]
):
    if shared_place.where is not None:
        configure(redis.asyncio.Redis.from_url(shared_place.where))
    else:
        configure(create_async_engine(shared_place.url))

    async def story() -> None:
        async with areservation("nightly"):
            assert await asyncio.to_thread(reservation("nightly").acquire) is False

    asyncio.run(story())
    assert reservation("nightly").acquire() is True
    assert reservation("nightly").break_() is True


def test_a_backend_for_blocking_code_alone_says_so():
    class Mine(MemoryBackend):
        twin = None  # type: ignore[assignment]

    configure(Mine())
    assert reservation("nightly").acquire()
    with pytest.raises(ConfigurationError, match="twin"):
        areservation("nightly")


def test_a_driver_that_is_not_there_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setattr("reservable.backends.database.engines.find_spec", lambda _: None)
    configure(f"sqlite:///{tmp_path}/x.sqlite")
    with pytest.raises(ConfigurationError, match="aiosqlite"):
        areservation("nightly")


def test_the_text_of_another_prefix_is_refused(tmp_path):
    configure("memory://", prefix="one:")
    held = reservation("nightly")
    held.acquire()
    with pytest.raises(InvalidHandle):
        AsyncReservation.loads(held.dumps(), MemoryBackend())


def test_closing_the_blocking_side_ends_nothing(shared_place: AsyncPlace):
    configure(shared_place.where or shared_place.blocking_url)
    held = reservation("nightly", 600)
    assert held.acquire()
    with closing(held.backend):
        pass
    configure(shared_place.where or shared_place.blocking_url)

    async def story() -> bool:
        return await areservation("nightly").acquire()

    assert asyncio.run(story()) is False


def test_both_are_told_of_releases_where_that_was_asked_for(fresh_database: Callable[[str], str]):
    configure(fresh_database("postgresql"), notify=True)
    held = reservation("nightly", 600)
    assert held.backend.capabilities.tells
    assert held.acquire()

    async def story() -> float:
        theirs = areservation("nightly", 600)
        assert theirs.backend.capabilities.tells
        waiting = asyncio.create_task(theirs.acquire(wait=30))
        await asyncio.sleep(0.5)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await asyncio.to_thread(held.release)
        assert await waiting
        return loop.time() - begun

    assert asyncio.run(story()) < 5


def test_renewing_goes_on_when_the_engine_is_disposed_of(place: AsyncPlace, caplog: pytest.LogCaptureFixture):
    async def story(session: AsyncSession, video: Video) -> None:
        async with video.areservation("download", 0.9, renew=True) as held:
            for _ in range(2):  # the first renewal connects in the keeper's own loop, which then stands still
                end = held.expires_at
                while held.expires_at == end:
                    await asyncio.sleep(0.01)
                assert isinstance(session.bind, AsyncEngine)
                await session.bind.dispose()
            await held.check()

    place.tell(story)
    assert "Exception in callback" not in caplog.text


def test_a_store_that_is_replaced_at_the_end_of_a_loop_goes_quietly(shared_place: AsyncPlace):
    code = """
import asyncio, sys, reservable
async def main():
    reservable.configure(sys.argv[1])
    async with reservable.areservation("nightly"):
        pass
    reservable.configure("memory://")
asyncio.run(main())
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, shared_place.where or shared_place.url],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert run.stderr == ""


@pytest.mark.parametrize(
    ("url", "found"), [("postgresql", "psycopg"), ("mysql", "pymysql"), ("mariadb", "pymysql")]
)
def test_a_url_without_a_driver_takes_one_that_is_installed(
    monkeypatch: pytest.MonkeyPatch, url: str, found: str
):
    def without_defaults(given: URL, **options: Any) -> Any:
        if "+" not in given.drivername:
            raise ImportError("no such module")
        return create_engine(given, **options)

    monkeypatch.setattr(engines, "create_engine", without_defaults)
    backend: Any = configure(f"{url}://nobody@localhost/nothing")
    assert backend.connections.dialect.driver == found
    monkeypatch.setattr(engines, "_is_installed", lambda driver: driver in {"asyncpg", "asyncmy"})
    backend = configure(f"{url}://nobody@localhost/nothing")
    assert backend.asynchronous
    monkeypatch.setattr(engines, "_is_installed", lambda _: False)
    with pytest.raises(ConfigurationError, match=r"pip install .reservable\[(postgresql|mysql)\]"):
        configure(f"{url}://nobody@localhost/nothing")
