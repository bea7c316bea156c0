"""`awork` and `arun`: the same stories on every driver of asyncio."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import aclosing, suppress
from typing import Any

import pytest
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncSession

from reservable import AsyncLease, NotSupported
from tests.sqlalchemy.queue.conftest import Tell
from tests.sqlalchemy.queue.models import Kept, Task
from tests.sqlalchemy.queue.rows import async_added, async_states, makers


def test_rows_come_until_it_is_to_stop(tell: Tell, caplog: pytest.LogCaptureFixture) -> None:
    async def story(session: AsyncSession) -> None:
        bad, passed_over, good, left = await async_added(session, *(Task() for _ in range(4)))
        stop = asyncio.Event()
        async for lease in Task.awork(makers(session), batch=4, stop=stop):
            if lease.pk == (passed_over,):
                continue
            async with lease:
                if lease.pk == (bad,):
                    raise ValueError("no such page")
                stop.set()
        assert await async_states(session) == {
            bad: ("pending", 1),
            passed_over: ("pending", 0),
            good: ("succeeded", 1),
            left: ("pending", 0),
        }
        assert f"tasks:{bad} failed" in caplog.text

    tell(story)


def test_leaving_the_loop_gives_back_what_was_not_begun(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        first, *rest = await async_added(session, *(Task() for _ in range(3)))
        async with aclosing(Task.awork(makers(session), batch=3)) as leases:  # type: ignore[type-var]
            async for lease in leases:
                async with lease:
                    break
        assert await async_states(session) == {first: ("succeeded", 1), **dict.fromkeys(rest, ("pending", 0))}

    tell(story)


def test_an_idle_worker_wakes_when_the_next_row_comes_due_and_stops_soon(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        session.add(row := Task())
        due = time.monotonic() + 1  # or later, by what it takes to ask for it
        await row.aenqueue(session, at="1s")
        await session.commit()
        committed = time.monotonic()
        stop = asyncio.Event()
        begun: list[float] = []
        async for lease in Task.awork(makers(session), stop=stop, idle="1 hour"):
            async with lease:
                begun.append(time.monotonic())
                asyncio.get_running_loop().call_later(0.2, stop.set)
        assert begun[0] > due - 0.001  # two clocks
        assert begun[0] < committed + 1 + 5
        assert time.monotonic() - begun[0] < 2

    tell(story)


def test_what_makes_no_async_sessions_is_refused(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        bad: Any = session
        with pytest.raises(NotSupported, match="makes sessions"):
            Task.awork(bad)
        bad = dict
        with pytest.raises(NotSupported, match="AsyncSession"):
            await Task.arun(bad, _nothing)

    tell(story)


async def _nothing(lease: AsyncLease) -> None:
    """The row is done at once."""


@pytest.mark.parametrize("in_batches", [False, True], ids=["one by one", "in batches"])
def test_every_row_is_handled_once(tell: Tell, in_batches: bool) -> None:
    async def story(session: AsyncSession) -> None:
        await session.execute(insert(Task), [{"title": str(number)} for number in range(50)])
        await session.commit()
        done: list[int] = []
        at_work: list[int] = [0]

        async def handler(lease: AsyncLease) -> None:
            at_work.append(at_work[-1] + 1)
            await asyncio.sleep(0)
            done.append(lease.pk[0])
            at_work.append(at_work[-1] - 1)

        await Task.arun(
            makers(session),
            handler,
            concurrency=4,
            batch=10,
            stop=lambda: len(done) == 50,
            complete_in_batches=in_batches,
        )
        assert set(Counter(done).values()) == {1}
        assert max(at_work) == 4
        assert set((await async_states(session)).values()) == {("succeeded", 1)}

    tell(story)


@pytest.mark.parametrize("in_batches", [False, True], ids=["one by one", "in batches"])
def test_at_the_stop_what_runs_is_finished_and_the_rest_is_given_back(tell: Tell, in_batches: bool) -> None:
    async def story(session: AsyncSession) -> None:
        bad, first, *rest = await async_added(session, *(Task() for _ in range(6)))
        stop, go_on = asyncio.Event(), asyncio.Event()

        async def handler(lease: AsyncLease) -> None:
            if lease.pk == (bad,):
                raise ValueError("no such page")
            stop.set()
            await go_on.wait()

        running = asyncio.create_task(
            Task.arun(makers(session), handler, batch=6, stop=stop, complete_in_batches=in_batches)
        )
        given_back = {bad: ("pending", 1), **dict.fromkeys(rest, ("pending", 0))}
        async with asyncio.timeout(10):
            while await async_states(session) != {first: ("running", 1), **given_back}:
                await asyncio.sleep(0.01)
        go_on.set()
        await running
        assert await async_states(session) == {first: ("succeeded", 1), **given_back}

    tell(story)


def test_cancelled_it_gives_everything_back(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        ids = await async_added(session, *(Task() for _ in range(5)))
        begun = asyncio.Event()

        async def handler(lease: AsyncLease) -> None:
            begun.set()
            await asyncio.sleep(60)

        running = asyncio.create_task(Task.arun(makers(session), handler, concurrency=2, batch=5))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await async_states(session) == dict.fromkeys(ids, ("pending", 0))

    tell(story)


def test_cancelled_again_and_again_it_ends_when_its_handlers_have(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        await async_added(session, Task(), Task())
        begun, ended = [], []

        async def handler(lease: AsyncLease) -> None:
            begun.append(lease)
            try:
                await asyncio.sleep(60)
            finally:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.3)  # it takes its time
                ended.append(lease)

        running = asyncio.create_task(Task.arun(makers(session), handler, concurrency=2, batch=2))
        while len(begun) < 2:
            await asyncio.sleep(0.01)
        for _ in range(3):
            running.cancel()
            await asyncio.sleep(0.05)
        with pytest.raises(asyncio.CancelledError):
            await running
        assert len(ended) == 2
        assert set((await async_states(session)).values()) == {("pending", 0)}

    tell(story)


def test_rows_in_hand_are_kept_alive(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        ids = await async_added(session, Kept(), Kept())
        stop = asyncio.Event()

        async def handler(lease: AsyncLease) -> None:
            if lease.pk == (ids[1],):
                stop.set()
                return
            until = time.monotonic() + 2.2  # longer than the lease
            while time.monotonic() < until:
                assert await Kept.aclaim(session) == []

        await Kept.arun(makers(session), handler, batch=2, stop=stop)
        assert await async_states(session, Kept) == dict.fromkeys(ids, ("succeeded", 1))

    tell(story)
