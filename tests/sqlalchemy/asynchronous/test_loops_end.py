"""Calls that are cancelled just before their event loop ends, which cancels what goes on behind them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, select
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from reservable import aeach_reserved, afirst_reserved, afirst_reserved_of, configure
from reservable.backends.opening import open_backend
from tests.sqlalchemy.asynchronous.conftest import AsyncPlace
from tests.sqlalchemy.models import Video
from tests.waiting import eventually

TURNS = range(1, 60, 7)
ALL = select(Video).order_by(Video.id)


async def first(session: AsyncSession, rows: list[Video]) -> object:
    return await afirst_reserved(session, ALL, "download", 600)


async def first_of(session: AsyncSession, rows: list[Video]) -> object:
    return await afirst_reserved_of(rows, "download", 600)


async def reserved(session: AsyncSession, rows: list[Video]) -> object:
    return await rows[0].areserve("download", 600)


async def released(session: AsyncSession, rows: list[Video]) -> object:
    assert await rows[0].areserve("download", 600)
    await rows[0].arelease("download")
    raise asyncio.CancelledError


Call = Callable[[AsyncSession, list[Video]], Awaitable[object]]


@pytest.fixture
def stocked(shared_place: AsyncPlace) -> AsyncPlace:
    engine = create_engine(shared_place.blocking_url)
    with Session(engine) as session:
        session.add_all(Video(title=str(number)) for number in range(3))
        session.commit()
    engine.dispose()
    return shared_place


@pytest.mark.parametrize("call", [first, first_of, reserved, released])
@pytest.mark.parametrize("how", ["cancelled", "cancelled twice", "left running"])
def test_what_the_end_of_the_loop_cuts_off_leaves_nothing_reserved(stocked: AsyncPlace, call: Call, how: str):
    async def story(turns: int) -> bool:
        """Whether the call was cut off."""
        engine = create_async_engine(stocked.url, poolclass=NullPool)
        async with AsyncSession(engine) as session:
            rows = [*await session.scalars(ALL)]
            await rows[0].ais_reserved("download")  # connected
            running = asyncio.ensure_future(call(session, rows))
            for _ in range(turns):
                await asyncio.sleep(0)
            if running.done() and not running.cancelled():
                return False
            cut.append(running)
            for _ in range({"cancelled": 1, "cancelled twice": 2, "left running": 0}[how]):
                running.cancel()
                await asyncio.sleep(0)
        return True

    cut: list[asyncio.Future[Any]] = []
    with closing(open_backend(stocked.where or stocked.blocking_url)) as backend:
        for turns in TURNS:
            was_cut = asyncio.run(story(turns))
            if was_cut and cut.pop().cancelled():
                eventually(lambda: not [*backend.list()], within=4)
            for held in [*backend.list()]:
                backend.break_(held.name)


def test_a_walk_that_is_cancelled_while_it_gives_a_row_back_holds_nothing(stocked: AsyncPlace):
    async def story(turns: int) -> None:
        engine = create_async_engine(stocked.url)
        async with AsyncSession(engine) as session:

            async def walk() -> None:
                async for row in aeach_reserved(session, ALL, "download", 600):
                    await row.arelease("download")
                    seen.append(row)

            seen: list[Video] = []
            walking = asyncio.ensure_future(walk())
            while len(seen) < 3 and not walking.done():  # from then on it meets rows that it has yielded
                await asyncio.sleep(0)
            for _ in range(turns):
                await asyncio.sleep(0)
            walking.cancel()
            with suppress(asyncio.CancelledError):
                await walking
            await asyncio.sleep(0.02)
        await engine.dispose()

    with closing(open_backend(stocked.where or stocked.blocking_url)) as backend:
        for turns in range(0, 60, 5):
            asyncio.run(story(turns))
            eventually(lambda: not [*backend.list()], within=4)


@pytest.fixture(autouse=True)
def configured(shared_place: AsyncPlace) -> None:
    configure(shared_place.where or shared_place.blocking_url)
