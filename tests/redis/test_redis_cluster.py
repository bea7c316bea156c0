"""Redis Cluster: keys in many slots, or in one by the prefix."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
import redis
from redis.cluster import RedisCluster

from reservable.backends.redis import RedisBackend
from reservable.errors import BackendError
from reservable.grants import Released
from tests.proxy import Proxy
from tests.server_process import free_port
from tests.servers import Redis, ServerBroken, start_redis
from tests.waiting import eventually

NAME = "videos:1:download"
MINUTE = timedelta(minutes=1)


@contextmanager
def start_cluster() -> Iterator[Redis]:
    """A cluster of one node; the port of its bus is a free one too, which only Redis 7 can be told."""
    try:
        server = start_redis("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    except ServerBroken as broken:
        if "cluster-port" in str(broken):
            pytest.skip("this Redis is older than 7")
        raise
    with server:
        with redis.Redis(port=server.port) as admin:
            admin.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            eventually(lambda: b"cluster_state:ok" in admin.execute_command("CLUSTER", "INFO"), 10)
        yield server


@pytest.fixture(scope="module")
def cluster() -> Iterator[Redis]:
    with start_cluster() as server:
        yield server


@pytest.mark.parametrize("decode", [False, True])
@pytest.mark.parametrize("prefix", ["plain:", "{app}:"])
def test_a_cluster_gives_the_same_answers(cluster: Redis, prefix: str, decode: bool) -> None:
    client = RedisCluster("127.0.0.1", cluster.port, decode_responses=decode)
    client.flushall()
    client.set("binary", b"\xff\xfe")
    backend = RedisBackend(client, prefix)
    names = [f"videos:{i}:x" for i in range(500)]
    assert backend.acquire(names[0], "O", "Jürgen", MINUTE)
    grant = backend.acquire_first(names, "A", "Jürgen", MINUTE)
    assert grant is not None
    assert grant.name == names[1]
    backend.release(names[0], "O")
    again = backend.acquire_first(names, "A", "Jürgen", MINUTE)
    assert again is not None
    assert (again.name, again.fence) == (grant.name, grant.fence)
    assert backend.acquire_first(names, "B", "o", MINUTE)
    assert sorted(holder.name for holder in backend.list("videos:?:x")) == names[:2]
    assert backend.extend(names[1], "A", timedelta(hours=1)) is not None
    asked = [(names[0], "B"), (names[1], "A"), (names[2], "A"), (names[3], "B")]
    assert set(backend.extend_many(asked, MINUTE)) == set(names[:2])
    client.script_flush()
    assert backend.release(names[1], "B") is Released.BY_ANOTHER
    assert backend.release(names[1], "A") is Released.YES
    assert backend.break_(names[0]) is True
    assert list(backend.list()) == []
    assert backend.eviction_policy() is None
    assert backend.server_version().startswith("Redis ")
    backend.close()
    assert client.ping()
    client.close()


def test_a_reply_that_a_cluster_lost_is_asked_for_again(cluster: Redis) -> None:
    with Proxy(cluster.port) as proxy:
        client = RedisCluster("127.0.0.1", proxy.port, address_remap=lambda address: (address[0], proxy.port))
        client.flushall()
        backend = RedisBackend(client)
        assert backend.acquire(NAME, "warm", "o", MINUTE)
        assert backend.release(NAME, "warm") is Released.YES
        proxy.drop_next_reply()
        granted = backend.acquire(NAME, "A", "o", MINUTE)
        assert granted is not None
        assert granted.until - granted.since <= 60_000_000
        proxy.drop_next_reply()
        assert backend.release(NAME, "A") is Released.UNKNOWN
        assert proxy.dropped == 2
        client.close()


def test_a_cluster_by_its_url_is_not_asked_before_it_is_needed(
    cluster: Redis, connect: Callable[..., RedisBackend]
) -> None:
    nowhere = free_port()
    down = connect(f"redis+cluster://127.0.0.1:{nowhere}/0")
    with pytest.raises(BackendError):
        down.acquire(NAME, "A", "o", MINUTE)
    backend = connect(f"redis+cluster://127.0.0.1:{nowhere},127.0.0.1:{cluster.port}/0", "url:")
    assert backend.acquire(NAME, "A", "o", MINUTE)
    assert backend.release(NAME, "A") is Released.YES


def test_a_cluster_that_went_away_is_a_broken_store_and_comes_back() -> None:
    with start_cluster() as server:
        client = RedisCluster("127.0.0.1", server.port)
        backend = RedisBackend(client)
        assert backend.acquire(NAME, "A", "o", MINUTE)
        server.kill()
        before = time.monotonic()
        with pytest.raises(BackendError):
            backend.release(NAME, "A")
        assert time.monotonic() - before < 5
        server.restart()

        def released() -> bool:
            try:
                return backend.release(NAME, "A") is Released.YES
            except BackendError:
                return False

        eventually(released, 15)
        client.close()
