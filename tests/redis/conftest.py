"""Backends on a real Redis, directly and through a proxy that misbehaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from typing import Any

import pytest
import redis

from reservable.backends.redis import RedisBackend
from reservable.backends.redis.connect import async_from_url, from_url
from reservable.testing.colours import LoopThread
from tests.proxy import Proxy
from tests.redis.colours import COLOURS, Blocked
from tests.servers import Redis, start_redis

NAME = "videos:1:download"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def url(fresh_database: Callable[[str], str]) -> str:
    return fresh_database("redis")


@pytest.fixture
def client(url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(url) as client:
        yield client


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> str:
    """Blocking code, or asyncio."""
    return str(request.param)


@pytest.fixture
def loop_thread() -> Iterator[LoopThread]:
    with closing(LoopThread()) as loop:
        yield loop


@pytest.fixture
def connect(colour: str, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """`from_url`, or `async_from_url` in the form of a blocking backend; closed after the test."""
    loop = request.getfixturevalue("loop_thread") if colour == "asyncio" else None
    with ExitStack() as stack:

        def connect(url: str, prefix: str = "") -> Any:
            if loop is None:
                return stack.enter_context(closing(from_url(url, prefix)))
            return stack.enter_context(closing(Blocked(async_from_url(url, prefix), loop)))

        yield connect


@pytest.fixture
def own_server() -> Iterator[Redis]:
    with start_redis() as server:
        yield server


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with Proxy(redis.connection.parse_url(url)["port"]) as proxy:
        yield proxy


@pytest.fixture
def through(proxy: Proxy, url: str, connect: Callable[..., RedisBackend]) -> RedisBackend:
    """A backend whose one connection goes through the proxy and is warm."""
    number = url.rpartition("/")[2]
    backend = connect(f"redis://127.0.0.1:{proxy.port}/{number}?socket_timeout=0.3")
    backend.acquire_first([NAME], "warm", "o", MINUTE)
    backend.acquire(NAME, "warm", "o", MINUTE)
    backend.extend(NAME, "warm", MINUTE)
    backend.release(NAME, "warm")
    assert backend.holder(NAME) is None
    return backend


@pytest.fixture
def holder(url: str) -> Iterator[RedisBackend]:
    """Somebody who holds the name."""
    backend = from_url(url)
    assert backend.acquire(NAME, "H", "holder", MINUTE)
    yield backend
    backend.close()


@pytest.fixture
def waiter(url: str, connect: Callable[..., Any]) -> Any:
    return connect(url + "?client_name=waiter")
