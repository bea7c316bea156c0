"""Commands that are cancelled in the middle: the next one on the connection gets its own answer."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import redis
import redis.asyncio as aio

from reservable.backends.redis import AsyncRedisBackend
from reservable.backends.redis.connect import async_from_url
from tests.asynchronous.cancelling import cancelled_at_random
from tests.proxy import Proxy
from tests.redis.test_redis_async import closed_at_the_end
from tests.redis.test_redis_cluster import start_cluster

MINUTE = timedelta(minutes=1)


def test_the_next_command_gets_its_own_answer(url: str, client: redis.Redis) -> None:
    async def fuzz() -> None:
        async with closed_at_the_end(async_from_url(url + "?client_name=fuzz")) as backend:
            await cancelled_at_random(backend, 1)
            assert sum(one["name"] == "fuzz" for one in client.client_list()) <= 5

    asyncio.run(fuzz())


def test_a_pool_of_few_loses_none_of_them(url: str) -> None:
    async def fuzz() -> None:
        pool = aio.BlockingConnectionPool.from_url(url, max_connections=2, timeout=5)
        async with closed_at_the_end(AsyncRedisBackend(aio.Redis(connection_pool=pool))) as backend:
            await cancelled_at_random(backend, 2)

    asyncio.run(fuzz())


def test_in_a_cluster() -> None:
    async def fuzz(port: int) -> None:
        backend = async_from_url(f"redis+cluster://127.0.0.1:{port}/0", "{a}:")
        async with closed_at_the_end(backend):
            await cancelled_at_random(backend, 3)

    with start_cluster() as server:
        asyncio.run(fuzz(server.port))


def test_an_answer_that_comes_after_the_cancellation_is_nobody_else_s(proxy: Proxy, url: str) -> None:
    number = url.rpartition("/")[2]

    async def late() -> None:
        backend = async_from_url(f"redis://127.0.0.1:{proxy.port}/{number}")
        async with closed_at_the_end(backend):
            assert await backend.acquire("n", "A", "the holder", MINUTE)
            proxy.stall()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(backend.acquire("n", "B", "o", MINUTE), 0.1)
            proxy.resume()
            holder = await backend.holder("n")
            assert holder is not None
            assert holder.owner == "the holder"

    asyncio.run(late())
