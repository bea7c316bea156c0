"""Calls of an asyncio backend that are cancelled in the middle, at random moments."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from datetime import timedelta

from reservable.backends.asynchronous import AsyncBackend
from reservable.grants import Released

MINUTE = timedelta(minutes=1)


async def cancelled_at_random(backend: AsyncBackend, seed: int, rounds: int = 200) -> None:
    chance = random.Random(seed)
    assert await backend.acquire("other", "OTHER", "the other", MINUTE)
    for turn in range(rounds):
        name, token = f"n{turn}", f"T{turn}"

        async def busy(name: str = name, token: str = token) -> None:
            while True:
                await backend.acquire(name, token, "me", MINUTE)
                await backend.holder("other")
                await backend.release(name, token)
                await backend.acquire_first(["other", name], token, "me", MINUTE)

        tasks = [asyncio.create_task(busy()) for _ in range(chance.randrange(1, 4))]
        await asyncio.sleep(chance.uniform(0, 0.005))
        for task in tasks:
            task.cancel()
        # What follows runs while they are still being unwound, and after.
        for _ in range(2):
            grant = await backend.acquire(f"mine{turn}", "M", "me", MINUTE)
            assert grant is not None
            assert grant.name == f"mine{turn}"
            holder = await backend.holder("other")
            assert holder is not None
            assert holder.owner == "the other"
            assert await backend.release(f"mine{turn}", "M") is Released.YES
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task
        # Its holder knows the token, so it can always put an end to what was cancelled.
        assert await backend.release(name, token) in (Released.YES, Released.NOT_HELD)
        assert await backend.holder(name) is None
