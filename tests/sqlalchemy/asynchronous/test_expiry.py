"""Rows whose attributes expire, by a commit or by `onupdate`: none of our calls loads them behind an await's back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import String, func, make_url, select
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from reservable import Queued, Reservable, afirst_reserved, atake_reserved
from tests.sqlalchemy.asynchronous.conftest import DRIVERS


class Base(DeclarativeBase):
    pass


class Clip(Reservable, Base):
    __tablename__ = "clips"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str | None] = mapped_column(String(50))
    changed: Mapped[datetime | None] = mapped_column(server_default=func.now(), onupdate=func.now())


class Job(Queued, Base):
    __tablename__ = "jobs"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str | None] = mapped_column(String(50))
    changed: Mapped[datetime | None] = mapped_column(server_default=func.now(), onupdate=func.now())


Story = Callable[[AsyncSession], Any]


@pytest.fixture(params=[*DRIVERS])
def tell(request: pytest.FixtureRequest, fresh_database: Callable[[str], str]) -> Callable[[Story], None]:
    kind, driver = DRIVERS[request.param]
    url = make_url(fresh_database(kind)).set(drivername=driver)

    async def whole(story: Story) -> None:
        engine = create_async_engine(url)
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        async with AsyncSession(engine) as session:  # whose commits expire everything
            await story(session)
        await engine.dispose()

    return lambda story: asyncio.run(whole(story))


def test_reservations_of_rows_that_have_expired(tell: Callable[[Story], None]) -> None:
    async def story(session: AsyncSession) -> None:
        session.add_all([Clip(title=str(number)) for number in range(4)])
        await session.commit()
        clips = select(Clip).order_by(Clip.id)
        clip = await afirst_reserved(session, clips, "k", 60)
        assert clip is not None
        await session.commit()
        assert await clip.arelease("k")
        assert await clip.areserve("k", 60)
        await session.refresh(clip)
        clip.title = "new"
        await session.commit()
        assert await clip.ais_reserved("k")
        async with clip.areservation("other"):
            pass
        assert await clip.arelease("k")
        rows = await atake_reserved(session, clips, "k", 60, limit=3)
        await session.commit()
        assert [await row.arelease("k") for row in rows] == [True] * 3

    tell(story)


def test_a_queues_rows_that_have_expired(tell: Callable[[Story], None]) -> None:
    async def story(session: AsyncSession) -> None:
        session.add_all([Job(), Job()])
        await session.commit()
        [lease] = await Job.aclaim(session)
        await session.commit()
        async with lease:
            await lease.update(title="t")
            assert lease.row.title == "t"
            assert lease.row.changed is not None
        job = (await session.scalars(select(Job).where(Job.status == "pending"))).one()
        await session.commit()
        assert await job.apause(session)
        await session.commit()
        assert await job.aresume(session)
        await session.commit()
        assert await job.acancel(session)

    tell(story)
