"""Calls that are cancelled at any moment: no grant without an owner, and no answer that is somebody else's."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from reservable import aeach_reserved, afirst_reserved, areservation, configure
from tests.sqlalchemy.asynchronous.conftest import AsyncPlace
from tests.sqlalchemy.models import Video

ROUNDS = 60
SOON = 2.0


async def is_soon_free(handle: Any) -> None:
    """Nobody holds it any more, within the time that a request on its way may take."""
    until = asyncio.get_running_loop().time() + SOON
    while (holder := await handle.holder()) is not None:
        assert asyncio.get_running_loop().time() < until, holder
        await asyncio.sleep(0.002)


def test_a_wait_that_is_cancelled_leaves_no_grant(place: AsyncPlace):
    configure(place.where or place.blocking_url)
    chance = random.Random(7)

    async def story() -> None:
        held = areservation("n", 60)
        for _ in range(ROUNDS):
            busy = chance.random() < 0.5
            if busy:
                # What was cancelled may be granted for a moment yet, on its way to be given back.
                assert await held.acquire(wait=SOON)
            waiter = areservation("n", 60)
            waiting = asyncio.create_task(waiter.acquire(wait=1))
            await asyncio.sleep(chance.uniform(0, 0.004))
            if busy and chance.random() < 0.7:
                await held.release()
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                if await waiting:
                    assert await waiter.release()
            await held.release()
            await is_soon_free(held)
            assert await held.acquire(wait=SOON)
            assert await held.release()
            witness = areservation("witness", 60)
            assert await witness.acquire()
            holder = await witness.holder()
            assert holder is not None
            assert holder.fence == witness.fence
            assert await witness.release()

    asyncio.run(story())


def test_a_search_that_is_cancelled_leaves_no_row_reserved(place: AsyncPlace):
    chance = random.Random(8)

    async def story(session: AsyncSession, video: Video) -> None:
        engine = session.bind

        async def first(session: AsyncSession) -> Video | None:
            return await afirst_reserved(session, select(Video), "download", 60)

        for _ in range(ROUNDS):
            async with AsyncSession(engine) as another:
                searching = asyncio.create_task(first(another))
                await asyncio.sleep(chance.uniform(0, 0.006))
                searching.cancel()
                with suppress(asyncio.CancelledError):
                    found = await searching
                    # None: the search before this one was granted the row, and is about to give it back.
                    assert found is None or await found.arelease("download") is True
            await is_soon_free(video.areservation("download"))
        while (found := await first(session)) is None:
            await asyncio.sleep(0.001)
        assert found is video

    if place.kind != "memory":
        place.tell(story)


def test_a_walk_that_is_cancelled_holds_what_it_has_yielded_and_no_more(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        session.add_all(Video(title=f"{number}") for number in range(5))
        await session.commit()
        got: list[Video] = []

        async def walk() -> None:
            async for row in aeach_reserved(session, select(Video).order_by(Video.id), "download", 60):
                got.append(row)
                await asyncio.sleep(60 if len(got) == 2 else 0)

        walking = asyncio.create_task(walk())
        while len(got) < 2:
            await asyncio.sleep(0.001)
        walking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await walking
        rows = list(await session.scalars(select(Video).order_by(Video.id)))
        assert [await row.ais_reserved("download") for row in rows] == [True, True] + [False] * 4
        assert [await row.arelease("download") for row in got] == [True, True]

    place.tell(story)


def test_a_timeout_around_a_call_is_a_timeout(place: AsyncPlace):
    configure(place.where or place.blocking_url)

    async def story() -> None:
        async with areservation("n", 60):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(areservation("n", 60).acquire(wait=60), 0.1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1), areservation("n", 60, wait=60):
                    pytest.fail("granted")
        await is_soon_free(areservation("n"))

    asyncio.run(story())
