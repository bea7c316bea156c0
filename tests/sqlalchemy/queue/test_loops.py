"""One asyncio engine in many event loops: one after the other, inside one another, and in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session

from reservable import AsyncLease
from tests.sqlalchemy.asynchronous.conftest import DRIVERS
from tests.sqlalchemy.queue.conftest import Queues, emptied
from tests.sqlalchemy.queue.models import Kept, Task
from tests.sqlalchemy.queue.rows import added, states
from tests.waiting import eventually


@pytest.fixture(params=[*DRIVERS])
def session(request: pytest.FixtureRequest, queues: Queues) -> Iterator[Session]:
    """For blocking code, on the database of every driver in turn."""
    with Session(emptied(request, queues, DRIVERS[request.param][0]), expire_on_commit=False) as session:
        session.info["driver"] = DRIVERS[request.param][1]
        yield session


@pytest.fixture
def shared(session: Session) -> AsyncEngine:
    """An engine for the whole process, whose sessions are asked for nothing but its rows."""
    url = session.get_bind().engine.url.set(drivername=session.info["driver"])
    return create_async_engine(url)


async def work(engine: AsyncEngine, rows: int) -> list[int]:
    """Do so many rows."""
    done: list[int] = []
    async with AsyncSession(engine) as session:
        while len(done) < rows:
            for lease in await Task.aclaim(session):
                async with lease:
                    await lease.heartbeat()
                    done.append(lease.pk[0])
    return done


def test_loops_one_after_the_other(session: Session, shared: AsyncEngine) -> None:
    ids = added(session, *(Task() for _ in range(4)))
    assert [asyncio.run(work(shared, 2)) for _ in range(2)] == [ids[:2], ids[2:]]
    assert states(session) == dict.fromkeys(ids, ("succeeded", 1))


def test_a_new_loop_for_every_call_as_bridges_from_blocking_code_make_it(
    session: Session, shared: AsyncEngine
) -> None:
    ids = added(session, *(Task() for _ in range(12)))
    done: list[int] = []

    async def view() -> None:
        done.extend(await work(shared, 1))
        for _ in range(10):
            done.extend(await asyncio.to_thread(lambda: asyncio.run(work(shared, 1))))
        done.extend(await work(shared, 1))

    asyncio.run(view())
    assert done == ids


def test_loops_in_threads(session: Session, shared: AsyncEngine) -> None:
    ids = added(session, *(Task() for _ in range(20)))
    together = threading.Barrier(2)

    def one(_: int) -> list[int]:
        together.wait(10)
        return asyncio.run(work(shared, 10))

    with ThreadPoolExecutor(2) as pool:
        done = [pk for some in pool.map(one, range(2)) for pk in some]
    assert sorted(done) == ids


def test_each_loop_keeps_its_own_rows_alive(session: Session, shared: AsyncEngine) -> None:
    ids = added(session, Kept(), Kept())

    async def hold() -> None:
        async with AsyncSession(shared) as own:
            [lease] = await Kept.aclaim(own)
            async with lease:
                ends = lease.expires_at
                await asyncio.to_thread(eventually, lambda: lease.expires_at != ends)

    for _ in range(2):
        asyncio.run(hold())
    assert states(session, Kept) == dict.fromkeys(ids, ("succeeded", 1))


def test_a_pool_in_one_loop_after_the_other(session: Session, shared: AsyncEngine) -> None:
    ids = added(session, *(Task() for _ in range(6)))

    async def run(rows: int) -> int:
        stop = asyncio.Event()
        done: list[int] = []

        async def handle(lease: AsyncLease) -> None:
            done.append(lease.pk[0])
            if len(done) >= rows:
                stop.set()

        await Task.arun(async_sessionmaker(shared), handle, stop=stop)
        return len(done)

    assert [asyncio.run(run(3)) for _ in range(2)] == [3, 3]
    assert states(session) == dict.fromkeys(ids, ("succeeded", 1))
