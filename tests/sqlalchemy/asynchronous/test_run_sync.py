"""Blocking code inside `AsyncSession.run_sync`, where it may await: as good as its twins, and of no use outside."""

from __future__ import annotations

import asyncio
import copy
import gc
import random

import pytest
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session
from sqlalchemy.util import await_only

from reservable import NotSupported, Reservation, configure, first_reserved
from tests.sqlalchemy.asynchronous.conftest import AsyncPlace
from tests.sqlalchemy.asynchronous.test_cancelled import is_soon_free
from tests.sqlalchemy.asynchronous.test_finding import ALL
from tests.sqlalchemy.models import Video


def test_what_is_cancelled_leaves_nothing_reserved(place: AsyncPlace):
    chance = random.Random(9)

    async def story(session: AsyncSession, video: Video) -> None:
        def reserved(blocking: Session) -> None:
            blocking.scalars(ALL).one().reserve("download", 60)

        def in_a_block(blocking: Session) -> None:
            with blocking.scalars(ALL).one().reservation("download", 60):
                await_only(asyncio.sleep(0.001))

        def found(blocking: Session) -> None:
            first_reserved(blocking, ALL, "download", 60)

        gc.collect()
        gc.freeze()  # what the other tests have left need not be looked through each time
        for turn in range(45):
            async with AsyncSession(session.bind) as another:
                running = asyncio.create_task(another.run_sync((reserved, in_a_block, found)[turn % 3]))
                await asyncio.sleep(chance.uniform(0, 0.006))
                running.cancel()
                await asyncio.wait([running])
            cancelled = running.cancelled()
            del running  # its error has the cursor of a SELECT that was cut off, and so SQLite's lock
            gc.collect()
            if cancelled:
                await is_soon_free(video.areservation("download"))
            else:
                await copy.copy(video).arelease("download")
        gc.unfreeze()

    if place.kind != "memory":
        place.tell(story)


def test_what_is_to_be_kept_alive_is(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        def work(_: Session) -> None:
            with video.reservation("download", 0.9, renew=True) as held:
                await_only(asyncio.sleep(2))
                held.check()

        await session.run_sync(work)
        assert not await video.ais_reserved("download")

    place.tell(story)


def test_waiting_does_not_block_the_loop_whatever_is_configured(place: AsyncPlace):
    configure(place.where or place.blocking_url)

    async def story(session: AsyncSession, video: Video) -> None:
        theirs = copy.copy(video)
        assert await theirs.areserve("download", 600)

        async def let_go() -> bool:
            await asyncio.sleep(0.1)
            return await theirs.arelease("download")

        releasing = asyncio.create_task(let_go())
        assert await session.run_sync(lambda _: video.reserve("download", wait=20)) is True
        assert await releasing is True

    place.tell(story)


def test_outside_it_says_what_to_await(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        assert await session.run_sync(lambda _: video.reserve("download", 600))
        handle = await session.run_sync(lambda _: video.reservation("download"))
        assert isinstance(handle, Reservation)
        for call in (
            handle.holder,
            handle.release,
            handle.check,
            lambda: handle.extend(5),
            lambda: video.release("download"),
        ):
            with pytest.raises(NotSupported, match="await"):
                call()
        assert await video.arelease("download") is True

    place.tell(story)
