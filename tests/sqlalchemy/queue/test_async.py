"""The queue for asyncio: the same story on every driver."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker

from reservable import (
    AsyncLease,
    BackendError,
    LeaseLost,
    NotClaimable,
    NotSupported,
    QueueColumnWarning,
    Retry,
    Snooze,
)
from tests.sqlalchemy.queue.conftest import Tell
from tests.sqlalchemy.queue.models import Kept, Task
from tests.sqlalchemy.queue.rows import async_added


async def status(session: AsyncSession, pk: int) -> Any:
    row = await session.get_one(Task, pk, populate_existing=True)
    await session.commit()
    return row.status, row.attempts, len(row.errors)


def test_a_row_goes_through_its_life(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        one, two, three = await async_added(session, Task(), Task(), Task())
        first, second = await Task.aclaim(session, 2)
        async with first as lease:
            lease.set(title="done")
            await lease.heartbeat()
            await lease.update(title="nearly")
        assert await status(session, one) == ("succeeded", 1, 0)
        await second.fail("no")
        assert await status(session, two) == ("pending", 1, 1)
        with pytest.raises(LeaseLost):
            await second.complete()
        assert not second.lost.is_set()  # it was not lost, but finished
        with pytest.raises(ValueError, match="boo"):
            async with Task.astart(session, three):
                raise ValueError("boo")
        assert await status(session, three) == ("pending", 1, 1)
        with pytest.raises(NotClaimable, match="not due"):
            async with Task.astart(session, three):
                pass
        async with Task.astart(session, three, ignore_due=True):
            raise Retry
        assert await status(session, three) == ("failed", 2, 2)
        assert (await Task.astatus_counts(session))["failed"] == 1
        assert await Task.areap(session) == 0
        await session.commit()
        assert await Task.aprune(session, 0) == 2

    tell(story)


def test_operators(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        [pk] = await async_added(session, Task())
        row = await session.get_one(Task, pk)
        assert await row.apause(session)
        assert row.status == "paused"
        assert await row.aresume(session)
        assert await row.acancel(session, "enough")
        assert row.last_error is not None
        assert row.last_error["message"] == "enough"
        assert await row.aretry(session)
        assert not await row.aenqueue(session)
        await session.commit()
        assert len(await Task.aclaim(session)) == 1

    tell(story)


def test_several_at_once_and_their_completion(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        await async_added(session, *(Task() for _ in range(5)))
        leases = await Task.aclaim(session, 5)
        await leases[2].release()
        done = await type(leases[0]).complete_all(leases)
        assert done == [*leases[:2], *leases[3:]]

    tell(story)


def test_data_and_completion_are_one_commit(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        [pk] = await async_added(session, Task())
        [lease] = await Task.aclaim(session)
        with pytest.raises(ValueError, match="not yet"):
            async with lease.transaction(session) as row:
                row.title = "half"
                raise ValueError("not yet")
        assert await status(session, pk) == ("running", 1, 0)
        async with lease.transaction(session) as row:
            row.title = "whole"
        assert await status(session, pk) == ("succeeded", 1, 0)
        assert await session.scalar(select(Task.title)) == "whole"

    tell(story)


def test_a_lease_is_kept_alive_in_its_block(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        await async_added(session, Kept())
        [lease] = await Kept.aclaim(session)
        async with lease:
            await asyncio.sleep(2.2)  # longer than the lease
            assert await Kept.aclaim(session) == []
            assert not lease.lost.is_set()

    tell(story)


def test_a_cancelled_task_gives_its_row_back(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        [pk] = await async_added(session, Task())
        [lease] = await Task.aclaim(session)
        entered = asyncio.Event()

        async def work() -> None:
            async with lease:
                entered.set()
                await asyncio.sleep(60)

        task = asyncio.create_task(work())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await status(session, pk) == ("pending", 0, 0)

    tell(story)


def test_signals_stay_inside(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        [pk] = await async_added(session, Task())
        async with Task.astart(session, pk):
            raise Snooze("1 hour")
        assert await status(session, pk) == ("pending", 0, 0)

    tell(story)


def test_blocking_verbs_on_an_asyncio_driver_name_their_twins(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        with pytest.raises(NotSupported, match="aclaim"):
            Task.claim(session.sync_session)

    tell(story)


def test_a_claim_that_is_cancelled_leaves_no_row_behind(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        await async_added(session, Task(), Task(), Task())
        for round_ in range(40):
            claim = asyncio.create_task(Task.aclaim(session, 2))
            await asyncio.sleep(round_ / 8000)
            claim.cancel()
            with suppress(asyncio.CancelledError):
                for lease in await claim:
                    await lease.release()
        async with asyncio.timeout(5):
            found = 0
            while found < 3:
                found += len(await Task.aclaim(session, 5))

    tell(story)


def test_a_flush_past_the_queue_is_told_with_its_place(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        [pk] = await async_added(session, Task())
        row = await session.get_one(Task, pk)
        row.status = "running"
        with pytest.warns(QueueColumnWarning) as caught:
            await session.flush()
        assert caught[0].filename == __file__
        await session.rollback()

    tell(story)


def test_what_is_no_asyncio_session_is_refused(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        sync: Any = session.sync_session
        with pytest.raises(NotSupported, match="AsyncSession"):
            await Task.aclaim(sync)
        with pytest.raises(NotSupported, match="AsyncSession"):
            await Task().apause(sync)
        scoped: Any = async_scoped_session(async_sessionmaker(session.bind), asyncio.current_task)
        assert await Task.aclaim(scoped) == []
        await scoped.remove()

    tell(story)


def test_after_a_finish_that_failed_the_lease_is_kept_alive(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(session: AsyncSession) -> None:
        await async_added(session, Kept())
        [lease] = await Kept.aclaim(session, renew=True)

        def broken(*_: Any, **__: Any) -> Any:
            raise BackendError("gone for a moment")

        with monkeypatch.context() as patched:
            patched.setattr(type(lease._desk), "move", broken)
            with pytest.raises(BackendError):
                await lease.complete()
        for _ in range(2):
            end = lease.expires_at
            while lease.expires_at == end:
                assert not lease.lost.is_set()
                await asyncio.sleep(0.01)
        await lease.complete()

    tell(story)


def test_a_completion_that_is_cancelled_is_not_overtaken_by_the_end_of_its_block(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        for ticks in range(1, 20):  # with none it would not have begun
            [one] = await async_added(session, Task())
            [lease] = await Task.aclaim(session)

            async def body(lease: AsyncLease = lease) -> None:
                async with lease:
                    await lease.complete(title="whole")

            task = asyncio.create_task(body())
            for _ in range(ticks):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            async with asyncio.timeout(20):
                while (found := await status(session, one))[0] == "running":
                    await asyncio.sleep(0.01)
            title = await session.scalar(select(Task.title).where(Task.id == one))
            assert (found, title) in ((("succeeded", 1, 0), "whole"), (("pending", 0, 0), None))
            await session.delete(await session.get_one(Task, one))
            await session.commit()

    tell(story)
