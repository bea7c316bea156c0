"""Calls that are cancelled in the middle: the next one on the connection gets its own answer, and has a connection."""

from __future__ import annotations

import asyncio
import gc
from datetime import timedelta

import pytest

from reservable.backends.asynchronous import AsyncBackend
from tests.asynchronous.cancelling import cancelled_at_random
from tests.asynchronous.conftest import Place
from tests.waiting import eventually

MINUTE = timedelta(minutes=1)


def test_cancelled_calls_neither_mix_up_answers_nor_lose_connections(
    place: Place, backend: AsyncBackend
) -> None:
    async def fuzz() -> None:
        await cancelled_at_random(backend, 1, 100)
        eventually(lambda: place.connections() <= 10)
        await backend.close()

    asyncio.run(fuzz())
    gc.collect()  # what was cancelled while a driver was still connecting goes with the garbage
    eventually(lambda: place.connections() == 0)


def test_a_cancellation_ends_the_call(backend: AsyncBackend) -> None:
    async def cancelled() -> None:
        await backend.holder("n")  # connected
        task = asyncio.create_task(backend.acquire("n", "T", "o", MINUTE))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await backend.close()

    asyncio.run(cancelled())
