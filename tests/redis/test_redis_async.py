"""The asyncio backend over every kind of client, and the twins of clients of the other colour."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from typing import Any

import fakeredis
import pytest
import redis
import redis.asyncio as aio
from redis.asyncio.cluster import RedisCluster

from reservable.backends.asynchronous import AsyncBackend
from reservable.backends.redis import AsyncRedisBackend, RedisBackend
from reservable.backends.redis.connect import async_from_url, from_url
from reservable.errors import BackendError, ConfigurationError
from reservable.grants import Released
from tests.redis.test_redis_cluster import start_cluster
from tests.server_process import free_port

NAME = "videos:1:download"
MINUTE = timedelta(minutes=1)


@asynccontextmanager
async def closed_at_the_end(backend: AsyncRedisBackend) -> AsyncIterator[AsyncRedisBackend]:
    try:
        yield backend
    finally:
        await backend.close()


async def every_verb(backend: AsyncRedisBackend) -> None:
    """Use every verb on an empty store and leave it empty."""
    owner = "Jürgen 行"
    grant = await backend.acquire(NAME, "T", owner, MINUTE)
    assert grant is not None
    again = await backend.acquire(NAME, "T", owner, MINUTE)
    assert again is not None
    assert again.fence == grant.fence
    assert await backend.acquire(NAME, "else", owner, MINUTE) is None
    first = await backend.acquire_first([NAME, "b", "c"], "U", owner, MINUTE)
    assert first is not None
    assert first.name == "b"
    assert {(holder.name, holder.owner) async for holder in backend.list()} == {("b", owner), (NAME, owner)}
    assert await backend.extend(NAME, "T", timedelta(hours=1)) is not None
    asked = [(NAME, "T"), ("b", "T"), ("c", "U")]
    assert list(await backend.extend_many(asked, timedelta(hours=1))) == [NAME]
    assert await backend.release(NAME, "else") is Released.BY_ANOTHER
    assert await backend.release(NAME, "T") is Released.YES
    assert await backend.break_("b") is True
    assert await backend.holder("b") is None
    assert await backend.prune() == 0
    assert await backend.eviction_policy() is None


@pytest.mark.parametrize("decode", [False, True])
@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_every_kind_of_client_gives_the_same_answers(
    url: str, decode: bool, protocol: int, encoding: str
) -> None:
    settings: Any = {"decode_responses": decode, "protocol": protocol, "encoding": encoding}

    async def use() -> None:
        client = aio.Redis.from_url(url, **settings)
        async with closed_at_the_end(AsyncRedisBackend(client, "a:")) as backend:
            assert isinstance(backend, AsyncBackend)
            await every_verb(backend)
        with redis.Redis.from_url(url, **settings) as blocking:
            async with closed_at_the_end(AsyncRedisBackend.beside(blocking, "a:")) as backend:
                await every_verb(backend)

    asyncio.run(use())


def test_both_colours_of_one_url_see_the_same_reservations(url: str) -> None:
    with closing(from_url(url, "a:")) as blocking:
        backend = AsyncRedisBackend.beside(blocking)
        grant = asyncio.run(backend.acquire(NAME, "T", "o", MINUTE))
        assert blocking.acquire(NAME, "T", "o", MINUTE) is not None
        with closing(RedisBackend.beside(backend)) as twin:
            assert (twin.prefix, backend.prefix) == ("a:", "a:")
            assert grant is not None
            holder = twin.holder(NAME)
            assert holder is not None
            assert holder.fence == grant.fence
        assert asyncio.run(backend.release(NAME, "T")) is Released.YES


def test_a_blocking_backend_beside_an_asyncio_client(url: str) -> None:
    client = aio.Redis.from_url(url, decode_responses=True, socket_timeout=3)
    with closing(RedisBackend.beside(client, "a:")) as backend:
        assert backend.acquire(NAME, "T", "o", MINUTE)
        assert backend.release(NAME, "T") is Released.YES


@pytest.mark.parametrize("prefix", ["plain:", "{app}:"])
def test_a_cluster(prefix: str) -> None:
    with start_cluster() as server:

        async def use() -> None:
            client = RedisCluster("127.0.0.1", server.port, decode_responses=True)
            async with closed_at_the_end(AsyncRedisBackend(client, prefix)) as backend:
                await every_verb(backend)
                names = [f"videos:{i}:x" for i in range(300)]
                assert await backend.acquire(names[0], "O", "o", MINUTE)
                grant = await backend.acquire_first(names, "A", "o", MINUTE)
                assert grant is not None
                assert grant.name == names[1]
                await client.script_flush()
                assert await backend.release(names[1], "A") is Released.YES
                async with backend.watch(names[0]) as watch:
                    task = asyncio.create_task(watch.pause(5))
                    await asyncio.sleep(0.2)
                    assert not task.done()
                    assert await backend.release(names[0], "O") is Released.YES
                    await asyncio.wait_for(task, 1)
            await client.aclose()

        for _ in range(2):
            asyncio.run(use())
        for give in (
            lambda: AsyncRedisBackend.beside(redis.RedisCluster("127.0.0.1", server.port), prefix),
            lambda: async_from_url(f"redis+cluster://127.0.0.1:{server.port}/0", prefix),
        ):
            backend = give()
            for _ in range(2):
                asyncio.run(every_verb(backend))
        asyncio_client = RedisCluster("127.0.0.1", server.port)
        with closing(RedisBackend.beside(asyncio_client, prefix)) as blocking:
            assert blocking.acquire_first(["a", "b"], "T", "o", MINUTE)


def test_a_cluster_that_is_down_is_a_broken_store() -> None:
    backend = async_from_url(f"redis+cluster://127.0.0.1:{free_port()}/0")
    with pytest.raises(BackendError):
        asyncio.run(backend.acquire(NAME, "T", "o", MINUTE))


@pytest.mark.parametrize("given", ["blocking", "asyncio"])
def test_fakeredis_of_either_colour(given: str) -> None:
    server = fakeredis.FakeServer()
    if given == "asyncio":
        backend = AsyncRedisBackend(fakeredis.FakeAsyncRedis(server=server))
        blocking = RedisBackend.beside(fakeredis.FakeAsyncRedis(server=server))
    else:
        blocking = RedisBackend(fakeredis.FakeRedis(server=server))
        backend = AsyncRedisBackend.beside(fakeredis.FakeRedis(server=server))

    async def use() -> None:
        assert await backend.acquire(NAME, "T", "o", MINUTE)
        async with backend.watch(NAME) as watch:
            await watch.pause(0.05)
        assert await backend.release(NAME, "T") is Released.YES

    for _ in range(2):
        asyncio.run(use())
    assert blocking.acquire(NAME, "T", "o", MINUTE)
    with blocking.watch(NAME) as watch:
        watch.pause(0.05)
    assert asyncio.run(backend.release(NAME, "T")) is Released.YES


def test_what_is_no_asyncio_client_is_refused() -> None:
    client = fakeredis.FakeAsyncRedis()
    for wrong in (fakeredis.FakeRedis(), client.pipeline(), None, "redis://", aio.Redis):
        with pytest.raises(ConfigurationError):
            AsyncRedisBackend(wrong)
    with pytest.raises(ConfigurationError):
        AsyncRedisBackend.beside(client)
    with pytest.raises(ConfigurationError):
        AsyncRedisBackend(client, "x" * 65)


def test_settings_that_the_other_colour_cannot_have_are_refused() -> None:
    class OwnConnection(redis.Connection):
        pass

    class OwnPool(redis.ConnectionPool):
        pass

    for pool in (
        OwnPool(),
        redis.ConnectionPool(connection_class=OwnConnection),
        redis.ConnectionPool(redis_connect_func=print),
    ):
        with pytest.raises(ConfigurationError):
            AsyncRedisBackend.beside(redis.Redis(connection_pool=pool))


def test_a_pool_of_another_class_makes_our_connections(url: str) -> None:
    class OwnPool(aio.ConnectionPool):
        made = 0

        def make_connection(self) -> Any:
            OwnPool.made += 1
            return super().make_connection()

    async def use() -> None:
        async with closed_at_the_end(
            AsyncRedisBackend(aio.Redis.from_pool(OwnPool.from_url(url)))
        ) as backend:
            await every_verb(backend)

    asyncio.run(use())
    assert OwnPool.made == 1


def test_a_pool_that_is_full_refuses_at_once_and_a_blocking_one_waits(url: str) -> None:
    async def use() -> None:
        full = AsyncRedisBackend(aio.Redis.from_url(url, max_connections=2), "a:")
        waiting = aio.BlockingConnectionPool.from_url(url, max_connections=2, timeout=20)
        patient = AsyncRedisBackend(aio.Redis(connection_pool=waiting), "b:")
        for backend, broken in ((full, 28), (patient, 0)):
            answers = await asyncio.gather(
                *(backend.acquire(f"n{i}", "T", "o", MINUTE) for i in range(30)), return_exceptions=True
            )
            assert sum(isinstance(answer, BackendError) for answer in answers) == broken
            await backend.close()

    asyncio.run(use())


def test_threads_that_wait_for_a_blocking_pool_get_its_connections(url: str) -> None:
    pool = redis.BlockingConnectionPool.from_url(url, max_connections=1, timeout=20)
    backend = RedisBackend(redis.Redis(connection_pool=pool))
    done: list[str] = []

    def work(name: str) -> None:
        for turn in range(100):
            assert backend.acquire(name, str(turn), "o", MINUTE)
            assert backend.release(name, str(turn)) is Released.YES
        done.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(15)
    backend.close()
    assert sorted(done) == list("abcd")
