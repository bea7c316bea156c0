"""The awaited methods of a model: the same answers as those for blocking code."""

from __future__ import annotations

import asyncio
import copy

import pytest
from sqlalchemy import inspect
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from reservable import (
    AlreadyReserved,
    AsyncReservation,
    InvalidDuration,
    InvalidKey,
    UnidentifiedInstance,
    configure,
)
from tests.sqlalchemy.asynchronous.conftest import AsyncPlace
from tests.sqlalchemy.models import Video


async def other(session: AsyncSession, video: Video) -> Video:
    """The same row as another worker has it: in a session of its own."""
    async with AsyncSession(session.bind) as another:
        return await another.get_one(Video, inspect(video).identity)


def test_granted_refused_and_released(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        theirs = copy.copy(video)
        assert await video.areserve("download", "+6 hours") is True
        assert await video.areserve("download", "+6 hours") is False
        assert await theirs.areserve("download") is False
        assert await theirs.arelease("download") is False
        assert await video.ais_reserved("download") is True
        assert await video.ais_reserved("upload") is False
        assert await video.arelease("download") is True
        assert await video.arelease("download") is False
        assert await video.ais_reserved("download") is False

    place.tell(story)


def test_a_commit_or_a_rollback_changes_nothing_and_loads_nothing(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        assert await video.areserve("download", 600)
        await session.commit()  # expires every attribute: to read one would need I/O
        assert await video.ais_reserved("download")
        await session.rollback()
        repr(video)
        assert await video.arelease("download") is True
        await session.commit()
        async with video.areservation("download") as held:
            await session.commit()
            assert held.held

    place.tell(story)


def test_an_operator_releases_whoever_holds_it(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        assert await video.areserve("download", 600)
        operator = await other(session, video)
        if place.where is None:
            assert isinstance(session.bind, AsyncEngine)
            configure(session.bind)  # it belongs to no session any more
        assert await operator.arelease("download") is True
        assert await video.arelease("download") is False

    place.tell(story)


def test_a_block_excludes_and_releases(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        theirs = copy.copy(video)
        async with video.areservation("download", 600) as held:
            assert isinstance(held, AsyncReservation)
            assert held.held
            assert 599 < held.remaining <= 600
            holder = await held.holder()
            assert holder is not None
            assert holder.fence == held.fence
            await held.check()
            assert await held.extend(1200)
            assert video.areservation("download") is held
            with pytest.raises(AlreadyReserved) as refused:
                async with theirs.areservation("download"):
                    pytest.fail("ran without the reservation")
            assert refused.value.holder is not None
            assert refused.value.holder.fence == held.fence
        assert not held.held
        assert await theirs.ais_reserved("download") is False

    place.tell(story)


def test_bad_input_is_refused_before_anything_is_asked(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        with pytest.raises(InvalidDuration):
            await video.areserve("download", 0)
        with pytest.raises(InvalidKey):
            await video.areserve("")
        with pytest.raises(InvalidDuration):
            video.areservation("download", None)
        with pytest.raises(UnidentifiedInstance):
            await Video().areserve("download")
        assert await video.ais_reserved("download") is False

    place.tell(story)


def test_tasks_that_share_an_instance_release_their_own_grant_only(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        refused = asyncio.Event()

        async def loser() -> bool:
            assert await video.areserve("download", 600) is False
            refused.set()
            return await video.arelease("download")

        assert await video.areserve("download", 600)
        assert await asyncio.create_task(loser()) is False
        assert refused.is_set()
        assert await video.ais_reserved("download") is True
        assert await video.arelease("download") is True

    place.tell(story)


def test_a_waiter_is_granted_when_the_holder_lets_go(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        theirs = copy.copy(video)
        assert await video.areserve("download", 600)
        waiting = asyncio.create_task(theirs.areserve("download", 600, wait=20))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        assert await video.arelease("download")
        assert await waiting is True
        assert await theirs.arelease("download") is True

    place.tell(story)


def test_a_waiter_is_granted_when_the_holders_time_is_over(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        assert await video.areserve("download", 0.5)
        assert await copy.copy(video).areserve("download", 600, wait=20) is True

    place.tell(story)


def test_what_no_session_knows_any_more_gives_back_its_own_grant_and_nothing_else(place: AsyncPlace):
    async def story(session: AsyncSession, video: Video) -> None:
        theirs = await other(session, video)  # detached already
        assert await video.areserve("download", 600)
        refused = copy.copy(video)
        assert await refused.areserve("download") is False
        session.expunge(video)
        assert await refused.arelease("download") is False
        assert video.areservation("download").held
        assert await video.ais_reserved("download") is True
        assert await video.areserve("download") is False
        assert await video.arelease("download") is True
        assert await video.arelease("download") is False
        configure(place.where or place.blocking_url)  # without a session, that is where it lives
        assert await theirs.areserve("download", 600)
        assert await video.arelease("download") is False
        assert await theirs.arelease("download") is True

    place.tell(story)
