"""Waiters for asyncio that are told by PostgreSQL, and are cancelled at an inconvenient moment."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from reservable import AsyncReservation
from reservable.backends.database import AsyncDatabaseBackend
from reservable.backends.database.watches import AsyncChannelLine


@pytest.fixture(params=["asyncpg", "psycopg"])
def url(request: pytest.FixtureRequest, fresh_database: Callable[[str], str]) -> Any:
    return make_url(fresh_database("postgresql")).set(drivername=f"postgresql+{request.param}")


def test_cancelled_in_the_turn_of_its_grant_it_is_granted_or_leaves_nothing(url: Any):
    async def story() -> None:
        backend = AsyncDatabaseBackend(create_async_engine(url), notify=True)
        for turns in range(4):
            holder, waiter = (AsyncReservation(backend, "n", 600, wait=60) for _ in range(2))
            assert await holder.acquire()
            waiting = asyncio.ensure_future(waiter.acquire())
            await asyncio.sleep(0.3)
            releasing = asyncio.ensure_future(holder.release())
            while not waiter.held:
                await asyncio.sleep(0)
            for _ in range(turns):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert await releasing
            if waiting.cancelled():
                async with asyncio.timeout(20):
                    while await backend.holder("n") is not None:
                        await asyncio.sleep(0.01)
            else:
                assert waiting.result() is True
                assert await waiter.release()
        await backend.close()

    asyncio.run(story())


def test_a_read_that_fails_behind_a_cancelled_waiter_is_no_noise():
    class Ear:
        def hang_up(self) -> None:
            """Whatever is read now fails."""

        close = hang_up

    class Broken:
        def left(self, ear: Any, stored: str) -> float:
            from sqlalchemy.util import await_only

            await_only(asyncio.sleep(0.05))
            raise ConnectionError("hung up")

    noise: list[Any] = []

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context))
        source: Any = Broken()
        line = AsyncChannelLine(source, "n")
        line._ear = Ear()
        reading = asyncio.ensure_future(line.left())
        await asyncio.sleep(0.01)
        reading.cancel()
        await asyncio.wait([reading])
        await asyncio.sleep(0.2)
        gc.collect()

    asyncio.run(story())
    assert not noise
