"""Finding and reserving for asyncio: the same search, awaited."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_scoped_session, async_sessionmaker
from sqlalchemy.orm import Session

from reservable import (
    NotSupported,
    aeach_reserved,
    afirst_reserved,
    afirst_reserved_of,
    atake_reserved,
    first_reserved,
)
from tests.sqlalchemy.asynchronous.conftest import AsyncPlace
from tests.sqlalchemy.models import Video

ALL = select(Video).order_by(Video.id)


async def rows(session: AsyncSession, count: int) -> list[Video]:
    session.add_all(Video(title=f"{number}") for number in range(count))
    await session.commit()
    return list(await session.scalars(ALL))


def test_the_first_free_row_comes_loaded_and_reserved(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        first, second = await rows(session, 1)
        await first.areserve("download")
        found = await afirst_reserved(session, ALL, "download", "+6 hours")
        assert found is second
        assert found.title == "0"
        assert await found.ais_reserved("download")
        assert found.areservation("download").held
        assert await afirst_reserved(session, ALL, "download") is None
        await session.commit()
        assert await found.arelease("download") is True

    place.tell(story)


def test_what_another_connection_has_just_written_is_seen(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        statement = select(Video).where(Video.title == "new").order_by(Video.id)
        await session.scalars(statement)  # the snapshot
        async with AsyncSession(session.bind) as another:
            (await another.get_one(Video, video.id)).title = "old"
            await another.commit()
        assert await afirst_reserved(session, statement, "download") is None

    if place.kind != "memory":
        place.tell(story)


def test_several_and_each(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        every = await rows(session, 6)
        taken = await atake_reserved(session, ALL, "download", 600, limit=3)
        assert taken == every[:3]
        rest = [row async for row in aeach_reserved(session, ALL, "download", 600)]
        assert rest == every[3:]
        assert [await row.arelease("download") for row in every] == [True] * 7
        chosen = await afirst_reserved_of(every[2:], "download")
        assert chosen is every[2]
        assert await afirst_reserved_of(every[2:3], "download") is None

    place.tell(story)


def test_many_tasks_never_get_the_same_row(place: AsyncPlace):
    async def story(engine: AsyncEngine) -> None:
        async with AsyncSession(engine) as session:
            await rows(session, 20)

        async def worker() -> list[int]:
            async with AsyncSession(engine, expire_on_commit=False) as session:
                return [row.id async for row in aeach_reserved(session, ALL, "download", 600)]

        done = await asyncio.gather(*(worker() for _ in range(4)))
        got = sorted(number for numbers in done for number in numbers)
        assert len(got) == len(set(got)) == 20

    place.with_engine(story)


def test_a_scoped_session_will_do_and_a_blocking_one_will_not(place: AsyncPlace):
    async def story(engine: AsyncEngine) -> None:
        scoped = async_scoped_session(async_sessionmaker(engine), asyncio.current_task)
        async with scoped() as session:
            await rows(session, 1)
        assert await afirst_reserved(scoped, ALL, "download") is not None
        await scoped.remove()
        blocking: Any = Session()
        with pytest.raises(NotSupported, match="AsyncSession"):
            await afirst_reserved(blocking, ALL, "download")
        async with AsyncSession(engine) as session:
            wrong: Any = session
            with pytest.raises(NotSupported, match="Session"):
                first_reserved(wrong, ALL, "download")
            with pytest.raises(NotSupported, match="afirst_reserved"):
                first_reserved(session.sync_session, ALL, "download")

    place.with_engine(story)


def test_the_blocking_functions_work_where_sqlalchemy_lets_blocking_code_await(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        found = await session.run_sync(lambda blocking: first_reserved(blocking, ALL, "download", 600))
        assert found is video
        assert await session.run_sync(lambda _: video.is_reserved("download"))
        assert await session.run_sync(lambda _: video.release("download"))

    place.tell(story)
