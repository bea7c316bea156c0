"""How `run` and `arun` come to their end: nothing is forgotten, and nothing waits for the slowest."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from reservable import AsyncLease, Lease
from tests.sqlalchemy.queue.conftest import Sessions, Tell
from tests.sqlalchemy.queue.models import Task
from tests.sqlalchemy.queue.rows import added, async_added, async_states, makers, states
from tests.waiting import eventually


async def eventually_in(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not await condition():
            await asyncio.sleep(0.01)


def test_what_is_done_is_stored_while_the_slowest_is_at_work(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    quick, slow = added(session, Task(), Task())
    begun, go_on = threading.Barrier(3), threading.Event()

    def handler(lease: Lease) -> None:
        begun.wait()
        if lease.pk[0] == slow:
            go_on.wait()

    working = threading.Thread(
        target=lambda: Task.run(
            sessions, handler, concurrency=2, batch=2, stop=stop, complete_in_batches=True
        )
    )
    working.start()
    try:
        begun.wait()
        stop.set()
        eventually(lambda: states(session)[quick] == ("succeeded", 1))
        assert states(session)[slow] == ("running", 1)
    finally:
        go_on.set()
        working.join()
    assert states(session)[slow] == ("succeeded", 1)


def test_what_is_done_is_stored_although_the_stopping_is_cancelled(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        quick, slow = await async_added(session, Task(), Task())
        begun: list[int] = []
        stop = asyncio.Event()

        async def handler(lease: AsyncLease) -> None:
            begun.append(lease.pk[0])
            if lease.pk[0] == slow:
                await asyncio.Event().wait()

        working = asyncio.create_task(
            Task.arun(makers(session), handler, concurrency=2, batch=2, stop=stop, complete_in_batches=True)
        )

        async def both_have_begun() -> bool:
            return len(begun) == 2

        await eventually_in(both_have_begun)
        stop.set()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert await async_states(session) == {quick: ("succeeded", 1), slow: ("pending", 0)}

    tell(story)


def test_a_task_that_has_not_had_its_first_step_gives_its_row_back(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        first, second = await async_added(session, Task(), Task())
        begun: list[int] = []

        async def handler(lease: AsyncLease) -> None:
            begun.append(lease.pk[0])

        def stop() -> bool:
            # Asked when the first row is done, in the callback that makes the task of the second.
            if begun == [first] and asyncio.current_task() is None:
                working.cancel()
            return False

        working = asyncio.create_task(Task.arun(makers(session), handler, batch=2, stop=stop))
        with pytest.raises(asyncio.CancelledError):
            await working
        assert begun == [first]
        assert await async_states(session) == {first: ("succeeded", 1), second: ("pending", 0)}

    tell(story)


def test_no_handler_goes_on_when_it_is_over(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    from reservable.leasing import async_pool

    async def story(session: AsyncSession) -> None:
        first, second = await async_added(session, Task(), Task())
        begun, stop = asyncio.Event(), asyncio.Event()
        giving_back, may_go_on = asyncio.Event(), asyncio.Event()
        seen_through: Any = vars(async_pool)["seen_through"]
        ended: list[int] = []

        async def slowly(desk: Any, work: Any, *arguments: Any) -> Any:
            giving_back.set()
            await may_go_on.wait()
            return await seen_through(desk, work, *arguments)

        async def handler(lease: AsyncLease) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(lease.pk[0])

        working = asyncio.create_task(Task.arun(makers(session), handler, batch=2, stop=stop))
        await begun.wait()
        with monkeypatch.context() as patched:
            patched.setattr(async_pool, "seen_through", slowly)
            stop.set()
            await giving_back.wait()
            working.cancel()
            may_go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await working
        assert ended == [first]
        assert await async_states(session) == {first: ("pending", 0), second: ("pending", 0)}

    tell(story)


def test_a_forked_child_completes_nothing_of_its_parents(engine: Engine, session: Session) -> None:
    import os

    added(session, Task())
    [lease] = Task.claim(session)
    child = os.fork()
    if child == 0:
        os._exit(len(Lease.complete_all([lease])))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert Lease.complete_all([lease]) == [lease]
