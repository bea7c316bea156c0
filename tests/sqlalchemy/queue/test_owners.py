"""For whom a lease is kept alive: who is in its block; and whose it is: the process's that has claimed it."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time

import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from reservable import Lease, LeaseLost
from tests.processes import Worker, tell
from tests.sqlalchemy.queue.conftest import Tell
from tests.sqlalchemy.queue.models import Kept, Short, Task
from tests.sqlalchemy.queue.rows import added, async_added, states
from tests.waiting import eventually

PAST_THE_LEASE = 2.3


def test_who_is_in_the_block_keeps_alive_what_a_thread_has_claimed_that_is_gone(
    session: Session, other: Session
) -> None:
    [one] = added(session, Kept())
    claimed: list[Lease] = []
    thread = threading.Thread(target=lambda: claimed.extend(Kept.claim(session, renew=True)))
    thread.start()
    thread.join()
    with claimed[0]:
        until = time.monotonic() + PAST_THE_LEASE
        while time.monotonic() < until:
            assert Kept.claim(other) == []
    assert states(session, Kept) == {one: ("succeeded", 1)}


def test_who_is_in_the_block_keeps_alive_what_a_task_has_claimed_that_is_gone(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        await async_added(session, Kept())
        [[lease]] = await asyncio.gather(Kept.aclaim(session, renew=True))
        async with lease:
            await asyncio.sleep(PAST_THE_LEASE)
            assert await Kept.aclaim(session) == []

    tell(story)


def fork_in_the_block(url: str) -> tuple[int, str]:
    """A child leaves the block, and its parent goes on: the child's exit status, and what the parent could do."""
    pid = -1
    with Session(create_engine(url)) as session:
        [lease] = Task.claim(session)
        try:
            with lease:
                pid = os.fork()
                if pid == 0:
                    try:
                        lease.complete(title="the child's")
                    except LeaseLost:
                        sys.exit(7)
                    sys.exit(1)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                tell("the child has ended")
                lease.update(title="the parent's")
        except SystemExit as ends:
            os._exit(int(str(ends)) if pid == 0 else 1)
        return status, str(session.get_one(Task, lease.pk[0]).title)


def test_a_forked_child_neither_ends_nor_changes_its_parents_lease(session: Session, url: str) -> None:
    [one] = added(session, Task())
    with Worker(fork_in_the_block, url) as worker:
        assert worker.hear(30) == "the child has ended"
        assert worker.result() == (7, "the parent's")
    assert states(session) == {one: ("succeeded", 1)}


def test_a_lease_that_has_run_out_is_not_prolonged_but_can_be_finished(session: Session) -> None:
    [one] = added(session, Short())
    [lease] = Short.claim(session)
    eventually(lambda: session.query(Short).filter(Short.expired()).count() == 1)
    session.rollback()
    lease._hold.lose(lease._hold.grant)  # as it learns by itself where it is kept alive
    with pytest.raises(LeaseLost, match="has run out"):
        lease.heartbeat()
    lease.complete()
    assert states(session, Short) == {one: ("succeeded", 1)}
