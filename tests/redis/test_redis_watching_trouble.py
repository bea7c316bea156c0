"""Watching where it cannot be done, is cut off, or is broken off: a waiter goes on, and nothing is left open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
import redis

from reservable.backends.redis import AsyncRedisBackend, RedisBackend
from reservable.backends.redis.connect import async_from_url
from tests.pausing import SLACK, later, outlives, took
from tests.proxy import Proxy
from tests.server_process import free_port
from tests.servers import Redis, start_redis
from tests.waiting import eventually

NAME = "videos:1:download"
MINUTE = timedelta(minutes=1)


def falls_back(waiter: Any, release: Callable[[], Any]) -> None:
    """It goes on without being told: by asking again and again, with pauses that grow."""
    with waiter.watch(NAME) as watch, later(release, 0.5):
        before = time.monotonic()
        tries = 0
        while waiter.acquire(NAME, "W", "waiter", MINUTE) is None:
            assert took(watch.pause, 5) < 0.1 + SLACK
            tries += 1
        assert time.monotonic() - before < 0.6 + SLACK
        assert tries < 20


def test_a_user_who_may_not_ask_to_be_told(own_server: Redis, connect: Callable[..., Any]) -> None:
    with redis.Redis.from_url(own_server.url) as admin:
        admin.execute_command("ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "-client")
        waiter = connect(f"redis://u:p@127.0.0.1:{own_server.port}/0")
        admin.set(NAME, "R1 other 1 o")
        falls_back(waiter, lambda: admin.delete(NAME))
        assert len(admin.execute_command("ACL", "LOG")) <= 3  # it is not asked time and again


@pytest.mark.parametrize("unknown", ["HELLO", "PTTL"])
def test_a_server_that_cannot_tell(unknown: str, connect: Callable[..., Any]) -> None:
    with (
        start_redis("--rename-command", unknown, "") as server,
        redis.Redis(port=server.port, protocol=2) as admin,
    ):
        waiter = connect(f"{server.url}?protocol=2")
        admin.set(NAME, "R1 other 1 o")
        falls_back(waiter, lambda: admin.delete(NAME))


def test_a_server_that_is_killed_or_frozen_while_it_is_watched(
    own_server: Redis, connect: Callable[..., Any]
) -> None:
    outlives(own_server, connect(own_server.url), NAME, MINUTE)


def test_nobody_there(connect: Callable[..., Any], proxy: Proxy) -> None:
    for url in (
        f"redis://127.0.0.1:{free_port()}/0",
        f"redis+cluster://127.0.0.1:{free_port()}/0",
        f"redis+sentinel://127.0.0.1:{free_port()}/service",
    ):
        with connect(url).watch(NAME) as watch:
            assert took(watch.pause, 0.2) < 0.2 + SLACK
    proxy.stall()
    with connect(f"redis://127.0.0.1:{proxy.port}/0").watch(NAME) as watch:
        assert took(watch.pause, 0.2) < 0.2 + SLACK


class Interrupted(BaseException):
    pass


def watchers(client: redis.Redis) -> int:
    return sum(one["name"] == "waiter" and one["cmd"] != "evalsha" for one in client.client_list())


def test_its_connection_is_closed_at_the_end_however_that_comes(
    waiter: Any, holder: RedisBackend, client: redis.Redis
) -> None:
    for error in (None, ValueError, Interrupted):
        with suppress(ValueError, Interrupted), waiter.watch(NAME) as watch:
            while watchers(client) == 0:  # on a busy machine one pause may be too short to connect
                watch.pause(0.1)
            if error is not None:
                raise error
        eventually(lambda: watchers(client) == 0)


def test_a_cancelled_pause_closes_its_connection(url: str, holder: RedisBackend, client: redis.Redis) -> None:
    async def wait(backend: AsyncRedisBackend) -> None:
        async with backend.watch(NAME) as watch:
            while True:
                await watch.pause(10)

    async def cancel() -> None:
        backend = async_from_url(url + "?client_name=waiter")
        for after in [0, 0.0001, 0.0003, 0.0006, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.05] * 10:
            task = asyncio.create_task(wait(backend))
            await asyncio.sleep(after)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 2)
        await asyncio.to_thread(eventually, lambda: watchers(client) == 0)

    asyncio.run(cancel())


def test_a_pause_that_was_cut_off_is_followed_by_one_that_listens(url: str, holder: RedisBackend) -> None:
    async def wait() -> None:
        backend = async_from_url(url)
        async with backend.watch(NAME) as watch:
            for limit in (0.0001, 0.0005, 0.001, 0.002, 0.1):
                with suppress(TimeoutError):
                    await asyncio.wait_for(watch.pause(10), limit)
            with later(lambda: holder.release(NAME, "H"), 0.3):
                before = time.monotonic()
                while await backend.holder(NAME) is not None:
                    await watch.pause(10)
                assert time.monotonic() - before < 0.3 + SLACK

    asyncio.run(wait())
