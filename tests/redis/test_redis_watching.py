"""Waiters are woken by the server: at once when they can be, by and by when not, and never later than asked."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
import redis.asyncio as aio
from redis._parsers import _AsyncRESP3Parser, _RESP3Parser

from reservable.backends.redis import AsyncRedisBackend, RedisBackend
from reservable.backends.redis.connect import from_url
from reservable.testing.colours import LoopThread
from tests.pausing import SLACK, later, took
from tests.processes import race
from tests.redis.colours import Blocked
from tests.servers import Redis

NAME = "videos:1:download"
MINUTE = timedelta(minutes=1)


def test_what_is_free_is_not_waited_for(waiter: Any) -> None:
    with waiter.watch(NAME) as watch:
        for _ in range(3):
            assert took(watch.pause, 5) < 2 * SLACK


def test_a_release_wakes_at_once(
    waiter: Any, holder: RedisBackend, colour: str, capsys: pytest.CaptureFixture[str]
) -> None:
    latencies = []
    for _ in range(50):
        released: list[float] = []

        def release(released: list[float] = released) -> None:
            released.append(time.perf_counter())
            holder.release(NAME, "H")

        with waiter.watch(NAME) as watch, later(release, 0.03):
            while waiter.acquire(NAME, "W", "waiter", MINUTE) is None:
                watch.pause(10)
            latencies.append(time.perf_counter() - released[0])
        waiter.release(NAME, "W")
        assert holder.acquire(NAME, "H", "holder", MINUTE)
    median = statistics.median(latencies)
    with capsys.disabled():
        print(f"\n  {colour}: {median * 1000:.2f} ms from release to grant (median of {len(latencies)})")
    assert median < 0.05


def test_a_break_wakes_and_so_does_a_key_deleted_by_hand(
    waiter: Any, holder: RedisBackend, client: redis.Redis
) -> None:
    for action in (lambda: holder.break_(NAME), lambda: client.delete(NAME), client.flushdb):
        holder.acquire(NAME, "H", "holder", MINUTE)
        with waiter.watch(NAME) as watch, later(action, 0.2):
            assert 0.1 < took(watch.pause, 10) < 0.2 + SLACK
            assert waiter.holder(NAME) is None


def test_the_end_of_the_holder_s_time_wakes_and_an_extension_moves_it(
    waiter: Any, holder: RedisBackend
) -> None:
    holder.extend(NAME, "H", timedelta(seconds=0.3))
    with waiter.watch(NAME) as watch:
        assert 0.25 < took(watch.pause, 10) < 0.3 + SLACK
        assert waiter.acquire(NAME, "W", "waiter", timedelta(seconds=0.3))
        with later(lambda: waiter.extend(NAME, "W", timedelta(seconds=1)), 0.15):
            began = time.monotonic()
            pauses = 0
            while waiter.holder(NAME) is not None:
                watch.pause(10)
                pauses += 1
            assert 1.1 < time.monotonic() - began < 1.15 + SLACK
            assert pauses <= 3


def test_a_pause_lasts_as_long_as_asked_and_no_longer_than_that(waiter: Any, holder: RedisBackend) -> None:
    with waiter.watch(NAME) as watch:
        for seconds in (0, 0.001, 0.01, 0.5):
            assert took(watch.pause, seconds) < seconds + SLACK
        before = time.monotonic()
        assert took(watch.pause, 0.5) >= 0.499
        assert time.monotonic() - before < 0.5 + SLACK


def test_waiting_longer_than_the_socket_s_timeout(
    url: str, connect: Callable[..., Any], holder: RedisBackend
) -> None:
    waiter = connect(url + "?socket_timeout=0.2&client_name=waiter")
    with waiter.watch(NAME) as watch, later(lambda: holder.release(NAME, "H"), 0.8):
        assert took(watch.pause, 0.4) >= 0.399
        assert 0.3 < took(watch.pause, 5) < 0.4 + SLACK


@pytest.mark.parametrize("settings", [{"decode_responses": True, "encoding": "utf-16"}, {"protocol": 2}, {}])
@pytest.mark.parametrize("parser", ["the default", "pure Python"])
def test_any_client_and_parser(
    url: str,
    colour: str,
    holder: RedisBackend,
    settings: dict[str, Any],
    parser: str,
    loop_thread: LoopThread,
) -> None:
    if parser == "pure Python":
        if redis.VERSION < (8,) and colour == "asyncio":
            pytest.skip(
                "this redis-py listens for pushes with the parser that it would choose itself, or not at all"
            )
        settings = settings | {"parser_class": _RESP3Parser if colour == "blocking" else _AsyncRESP3Parser}
    waiter: Any
    if colour == "blocking":
        pool = redis.ConnectionPool.from_url(url, **settings)
        waiter = RedisBackend(redis.Redis(connection_pool=pool))
    else:
        async_pool = aio.ConnectionPool.from_url(url, **settings)
        waiter = Blocked(AsyncRedisBackend(aio.Redis(connection_pool=async_pool)), loop_thread)
    with waiter.watch(NAME) as watch:
        assert took(watch.pause, 0.3) >= 0.299
        with later(lambda: holder.release(NAME, "H"), 0.2):
            assert 0.1 < took(watch.pause, 5) < 0.2 + SLACK
        assert took(watch.pause, 5) < SLACK
    waiter.close()


def take_in_turn(number: int, url: str, rounds: int) -> tuple[int, float]:
    """How often it gave up after ten seconds, and the longest wait."""
    backend = from_url(url)
    given_up, longest = 0, 0.0
    for turn in range(rounds):
        token, began = f"{number}-{turn}", time.monotonic()
        with backend.watch(NAME) as watch:
            while not (granted := backend.acquire(NAME, token, "o", MINUTE)):
                left = began + 10 - time.monotonic()
                if left <= 0:
                    break
                watch.pause(left)
        longest = max(longest, time.monotonic() - began)
        if granted:
            time.sleep(0.02)
            backend.release(NAME, token)
        else:
            given_up += 1
    backend.close()
    return given_up, longest


def test_many_processes_on_one_name_all_get_it_and_do_not_flood(
    own_server: Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    processes, rounds = 12, 4
    before = time.monotonic()
    results = race(take_in_turn, own_server.url, rounds, processes=processes)
    with redis.Redis.from_url(own_server.url) as admin:
        stats = admin.info("commandstats")
    sent = sum(stats[f"cmdstat_{command}"]["calls"] for command in ("evalsha", "pttl"))
    grants = processes * rounds
    with capsys.disabled():
        print(
            f"\n  {processes} processes: longest wait {max(longest for _, longest in results):.2f} s, "
            f"{sent / grants:.0f} commands for each grant, {time.monotonic() - before:.1f} s in all"
        )
    assert [given_up for given_up, _ in results] == [0] * processes
    assert sent < grants * processes * 4
