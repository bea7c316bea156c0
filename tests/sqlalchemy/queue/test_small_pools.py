"""The queue takes no connection from the caller's pool, so no worker waits for another's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Engine, NullPool, StaticPool, select, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tests.sqlalchemy.queue.conftest import Tell
from tests.sqlalchemy.queue.models import Kept, Task
from tests.sqlalchemy.queue.rows import added, async_added, async_states, states
from tests.waiting import eventually

Make = Callable[..., Engine]
FULL: dict[str, Any] = {"pool_size": 5, "max_overflow": 0, "pool_timeout": 2}


def test_threads_that_hold_every_connection_of_their_pool_all_work(
    session: Session, url: str, make_engine: Make
) -> None:
    ids = added(session, *(Task() for _ in range(5)))
    engine = make_engine(url, **FULL)
    together = threading.Barrier(5)

    def work(_: int) -> None:
        with Session(engine) as own:
            own.execute(select(Task.title)).all()  # a transaction, and so a connection
            together.wait(10)
            [lease] = Task.claim(own)
            with lease:
                together.wait(10)
                lease.heartbeat()
            together.wait(10)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, range(5)))
    assert states(session) == dict.fromkeys(ids, ("succeeded", 1))


def test_tasks_that_hold_every_connection_of_their_pool_all_work(tell: Tell) -> None:
    async def story(session: AsyncSession) -> None:
        ids = await async_added(session, *(Task() for _ in range(5)))
        assert session.bind is not None
        engine = create_async_engine(session.bind.engine.url, **FULL)
        together = asyncio.Barrier(5)

        async def work() -> None:
            async with AsyncSession(engine) as own:
                await own.execute(text("SELECT 1"))
                await together.wait()
                [lease] = await Task.aclaim(own)
                async with lease:
                    await together.wait()
                    await lease.heartbeat()
                await together.wait()

        async with asyncio.timeout(30):
            await asyncio.gather(*(work() for _ in range(5)))
        await engine.dispose()
        assert await async_states(session) == dict.fromkeys(ids, ("succeeded", 1))

    tell(story)


def test_a_row_is_kept_alive_beside_a_pool_that_is_used_up(
    session: Session, url: str, make_engine: Make
) -> None:
    added(session, Kept())
    engine = make_engine(url, pool_size=1, max_overflow=0, pool_timeout=2)
    with Session(engine) as own:
        [lease] = Kept.claim(own)
        own.execute(text("SELECT 1"))
        with lease:
            ends = lease.expires_at
            eventually(lambda: lease.expires_at != ends)


@pytest.mark.parametrize("kind", [NullPool, StaticPool])
def test_other_kinds_of_pools_will_do(session: Session, url: str, make_engine: Make, kind: type[Any]) -> None:
    ids = added(session, Task(), Task())
    with Session(make_engine(url, poolclass=kind)) as own:
        own.execute(text("SELECT 1"))
        first, second = Task.claim(own, 2)
        with first:
            second.complete()
    assert states(session) == dict.fromkeys(ids, ("succeeded", 1))


@pytest.mark.parametrize("level", ["AUTOCOMMIT", "SERIALIZABLE"])
def test_threads_on_an_engine_of_another_isolation_level_do_each_row_once(
    session: Session, url: str, make_engine: Make, level: Any
) -> None:
    ids = added(session, *(Task() for _ in range(60)))
    engine = make_engine(url, isolation_level=level)

    def work(_: int) -> list[int]:
        done = []
        with Session(engine) as own:
            while leases := Task.claim(own):
                leases[0].complete()
                done.append(leases[0].pk[0])
        return done

    with ThreadPoolExecutor(6) as pool:
        done = [one for some in pool.map(work, range(6)) for one in some]
    assert sorted(done) == ids
