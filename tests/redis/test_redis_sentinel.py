"""Sentinel tells where the master is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import redis
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.sentinel import Sentinel

from reservable.backends.redis import AsyncRedisBackend, RedisBackend
from reservable.errors import BackendError, ConfigurationError
from reservable.grants import Released
from tests.server_process import free_port
from tests.servers import Redis

NAME = "videos:1:download"
MINUTE = timedelta(minutes=1)


class SentinelServer(Redis):
    """A Sentinel; it wants a file that it may write its settings to."""

    def _command(self) -> list[str]:
        settings = self.folder / "sentinel.conf"
        settings.write_text(f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n")
        settings.chmod(0o666)
        return [self._redis, str(settings), "--sentinel"]


@pytest.fixture
def sentinel(own_server: Redis) -> Iterator[int]:
    """The port of a Sentinel that watches a server as "mymaster"."""
    with SentinelServer() as server:
        with redis.Redis(port=server.port) as admin:
            admin.execute_command("SENTINEL", "MONITOR", "mymaster", "127.0.0.1", own_server.port, 1)
        yield server.port


def test_sentinel_tells_where_the_master_is(
    sentinel: int, own_server: Redis, connect: Callable[..., RedisBackend]
) -> None:
    nowhere = free_port()
    backend = connect(f"redis+sentinel://127.0.0.1:{nowhere},127.0.0.1:{sentinel}/mymaster/2", "a:")
    assert backend.acquire(NAME, "A", "o", MINUTE)
    with redis.Redis(port=own_server.port, db=2) as client:
        assert client.exists(f"a:{NAME}")
    given = Sentinel([("127.0.0.1", sentinel)])
    with given.master_for("mymaster", db=2) as master:
        other = RedisBackend(master, "a:")
        assert other.release(NAME, "A") is Released.YES
        other.close()
    with (
        given.slave_for("mymaster") as replica,
        pytest.raises(ConfigurationError, match="master_for"),
    ):
        RedisBackend(replica)
    for one in given.sentinels:
        one.close()


def test_the_wrong_service_name_is_a_broken_store(
    sentinel: int, connect: Callable[..., RedisBackend]
) -> None:
    with pytest.raises(BackendError):
        connect(f"redis+sentinel://127.0.0.1:{sentinel}/other").acquire(NAME, "A", "o", MINUTE)


def test_sentinel_tells_asyncio_too(sentinel: int, own_server: Redis) -> None:
    given = AsyncSentinel([("127.0.0.1", sentinel)])
    master = given.master_for("mymaster", db=2)
    with pytest.raises(ConfigurationError, match="master_for"):
        AsyncRedisBackend(given.slave_for("mymaster"))
    blocking = Sentinel([("127.0.0.1", sentinel)])
    backends = [
        AsyncRedisBackend(master, "a:"),
        AsyncRedisBackend.beside(blocking.master_for("mymaster", db=2), "a:"),
    ]

    async def use(backend: AsyncRedisBackend) -> None:
        assert await backend.acquire(NAME, "A", "o", MINUTE)
        async with backend.watch(NAME) as watch:
            task = asyncio.create_task(watch.pause(5))
            await asyncio.sleep(0.2)
            assert not task.done()
            assert await backend.release(NAME, "A") is Released.YES
            await asyncio.wait_for(task, 1)

    for backend in backends:
        for _ in range(2):
            asyncio.run(use(backend))
    twin = RedisBackend.beside(master, "a:")
    assert twin.acquire(NAME, "A", "o", MINUTE)
    with redis.Redis(port=own_server.port, db=2) as client:
        assert client.exists(f"a:{NAME}")
    twin.close()
    for one in blocking.sentinels:
        one.close()
