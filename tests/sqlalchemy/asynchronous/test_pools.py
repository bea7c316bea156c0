"""No connection is taken from the caller's pool, so no task waits for another's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import NullPool, select, text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from reservable import afirst_reserved
from tests.sqlalchemy.asynchronous.conftest import AsyncPlace
from tests.sqlalchemy.models import Video

ALL = select(Video).order_by(Video.id)


async def add(place: AsyncPlace, count: int) -> list[int]:
    engine = create_async_engine(place.url)
    async with AsyncSession(engine) as session:
        session.add_all(Video(title=str(number)) for number in range(count))
        await session.commit()
        ids = [*await session.scalars(select(Video.id).order_by(Video.id))]
    await engine.dispose()
    return ids


@pytest.mark.parametrize(
    "options",
    [{"pool_size": 5, "max_overflow": 0, "pool_timeout": 2}, {"poolclass": NullPool}],
    ids=["full", "none"],
)
def test_tasks_that_hold_every_connection_of_their_pool_all_reserve(
    place: AsyncPlace, options: dict[str, Any]
) -> None:
    async def work(engine: AsyncEngine, together: asyncio.Barrier, pk: int) -> int:
        async with AsyncSession(engine) as session:
            video = await session.get_one(Video, pk)
            await session.execute(text("SELECT 1"))
            await together.wait()
            assert await video.areserve("watch", 60)
            found = await afirst_reserved(session, ALL, "download", 60)
            await together.wait()
            assert await video.arelease("watch")
            assert found is not None
            return found.id

    async def story() -> None:
        ids = await add(place, 5)
        engine = create_async_engine(place.url, **options)
        together = asyncio.Barrier(5)
        async with asyncio.timeout(30):
            found = await asyncio.gather(*(work(engine, together, pk) for pk in ids))
        assert sorted(found) == ids
        await engine.dispose()

    asyncio.run(story())
