"""Servers that are down, full, read-only, or have lost what they knew."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import redis

from reservable.backends.redis import RedisBackend
from reservable.backends.redis.connect import async_from_url
from reservable.errors import BackendError
from reservable.grants import Released
from tests.pausing import must_take_less_than
from tests.servers import Redis
from tests.waiting import eventually

NAME = "videos:1:download"
MINUTE = timedelta(minutes=1)


def failing(verb: Callable[[], Any]) -> None:
    with pytest.raises(BackendError) as caught:
        verb()
    assert isinstance(caught.value.__cause__, redis.exceptions.RedisError)


def test_a_server_that_is_down_is_an_error_of_its_own_and_comes_at_once(
    own_server: Redis, connect: Callable[..., RedisBackend]
) -> None:
    with redis.Redis.from_url(own_server.url) as client:
        given = RedisBackend(client)
        backends = [given, connect(own_server.url)]
        for backend in backends:
            assert backend.acquire(NAME, "A", "o", MINUTE)
        own_server.kill()
        for backend in backends:
            verbs: list[Callable[[], Any]] = [
                lambda b=backend: b.acquire(NAME, "A", "o", MINUTE),  # type: ignore[misc]
                lambda b=backend: b.acquire_first([NAME], "A", "o", MINUTE),  # type: ignore[misc]
                lambda b=backend: b.release(NAME, "A"),  # type: ignore[misc]
                lambda b=backend: b.extend(NAME, "A", MINUTE),  # type: ignore[misc]
                lambda b=backend: b.holder(NAME),  # type: ignore[misc]
                lambda b=backend: b.break_(NAME),  # type: ignore[misc]
                lambda b=backend: list(b.list()),  # type: ignore[misc]
            ]
            for verb in verbs:
                must_take_less_than(0.8, partial(failing, verb))
        own_server.restart()
        for backend in backends:
            assert backend.release(NAME, "nobody") is not Released.YES
        given.close()


def test_a_failover_that_lost_the_reservation_shows_at_extend(
    url: str, own_server: Redis, connect: Callable[..., RedisBackend]
) -> None:
    before, after = connect(url), connect(own_server.url)  # the promoted replica has not seen the key
    granted = before.acquire(NAME, "A", "o", MINUTE)
    taken = after.acquire(NAME, "B", "o", MINUTE)
    assert granted is not None
    assert taken is not None
    assert taken.fence > granted.fence
    assert after.extend(NAME, "A", MINUTE) is None
    assert after.release(NAME, "A") is Released.BY_ANOTHER


def test_a_read_only_replica_is_a_broken_store(
    own_server: Redis, connect: Callable[..., RedisBackend]
) -> None:
    backend = connect(own_server.url)
    with redis.Redis.from_url(own_server.url) as admin:
        admin.replicaof("127.0.0.1", "1")
        with pytest.raises(BackendError):
            backend.acquire(NAME, "A", "o", MINUTE)
        admin.replicaof("NO", "ONE")
    assert backend.acquire(NAME, "A", "o", MINUTE)


def test_full_memory_refuses_grants_as_broken_and_still_releases(
    own_server: Redis, connect: Callable[..., RedisBackend]
) -> None:
    backend = connect(own_server.url)
    for name in ("a", "b"):
        assert backend.acquire(name, "A", "o", MINUTE)
    with redis.Redis.from_url(own_server.url) as admin:
        admin.script_flush()
        admin.config_set("maxmemory", 1)
        with pytest.raises(BackendError, match="maxmemory"):
            backend.acquire(NAME, "A", "o", MINUTE)
        with pytest.raises(BackendError, match="maxmemory"):
            backend.acquire_first([NAME], "A", "o", MINUTE)
        assert backend.extend("a", "A", timedelta(hours=1)) is not None
        assert backend.holder("a") is not None
        assert backend.release("a", "A") is Released.YES
        assert backend.break_("b") is True


def test_an_evicted_reservation_shows_at_extend(
    own_server: Redis, connect: Callable[..., RedisBackend]
) -> None:
    backend = connect(own_server.url)
    assert backend.acquire(NAME, "A", "o", MINUTE)
    with redis.Redis.from_url(own_server.url) as admin:
        assert backend.eviction_policy() is None
        admin.config_set("maxmemory-policy", "allkeys-lru")
        assert backend.eviction_policy() is None  # while there is no limit, nothing is evicted
        admin.config_set("maxmemory", 1)
        assert backend.eviction_policy() == "allkeys-lru"
        eventually(lambda: admin.exists(NAME) == 0)
        admin.config_set("maxmemory", 0)
    assert backend.extend(NAME, "A", MINUTE) is None
    assert backend.release(NAME, "A") is Released.NOT_HELD


def test_nothing_listens_on_a_half_open_port_for_longer_than_the_timeout(
    connect: Callable[..., RedisBackend],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        backend = connect(f"redis://127.0.0.1:{silent.getsockname()[1]}/0?socket_timeout=0.1")
        before = time.monotonic()
        with pytest.raises(BackendError):
            backend.acquire(NAME, "A", "o", MINUTE)
        assert time.monotonic() - before < 2


def test_a_server_that_hung_up_is_not_asked_on_that_connection(url: str, client: redis.Redis) -> None:
    backend = async_from_url(url + "?client_name=idle")
    with closing(asyncio.new_event_loop()) as loop:
        assert loop.run_until_complete(backend.acquire(NAME, "T", "o", MINUTE))
        client.client_kill_filter(_id=next(c["id"] for c in client.client_list() if c["name"] == "idle"))
        # The loop stood still: it has not been told. A lost reply would make this UNKNOWN.
        assert loop.run_until_complete(backend.release(NAME, "T")) is Released.YES
        loop.run_until_complete(backend.close())
