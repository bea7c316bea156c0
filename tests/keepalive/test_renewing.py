"""What is kept alive stays held, with few questions to the store."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from secrets import token_hex

import pytest

from reservable import keepalive
from reservable.backends.base import Backend
from reservable.backends.memory import MemoryBackend
from reservable.backends.redis.connect import async_from_url, from_url
from reservable.grants import Released
from reservable.keepalive.entries import Entry, Extension
from tests.keepalive.doubles import NAME, Held, OneByOne, Watched, extended, held, is_free
from tests.waiting import eventually

Hold = Callable[..., Held]
Connect = Callable[[str], Backend]


def test_a_short_lifetime_is_kept_and_never_free_for_a_contender(
    url: str, connect: Connect, hold: Hold
) -> None:
    contender = connect(url)
    for number in range(5):  # a disk that stands still for as long as the lifetime is no fault of the keeper
        one = hold(connect(url), f"videos:{number}:k", seconds=0.3)
        if not is_ever_granted(contender, one, within=3):
            assert not one.lost.is_set()
            assert one.extended >= 10
            assert one.release() is Released.YES
            assert is_free(contender, one.name)
            return
        assert time.monotonic() >= one.deadline
        assert one.lost.wait(0.3)
    pytest.fail("lost every time")


def is_ever_granted(contender: Backend, one: Held, within: float) -> bool:
    until = time.monotonic() + within
    while time.monotonic() < until:
        if contender.acquire(one.name, token_hex(16), "a contender", timedelta(minutes=1)) is not None:
            return True
        time.sleep(0.005)
    return False


def test_one_is_extended_at_a_third_of_its_lifetime(watched: Watched, hold: Hold) -> None:
    one = hold(watched, seconds=1.5)
    ends = [one.deadline]
    for number in (1, 2):
        extended(one, number)
        ends.append(one.deadline)
    assert [later - sooner for sooner, later in pairwise(ends)] == [pytest.approx(0.5, abs=0.1)] * 2


def test_a_backend_without_the_optional_verb_is_kept_alive_too(memory: MemoryBackend, hold: Hold) -> None:
    ones = [hold(OneByOne(memory), f"videos:{n}:k") for n in range(3)]
    eventually(lambda: all(one.extended >= 3 for one in ones))
    memory.break_(ones[1].name)
    assert ones[1].lost.wait(1)
    assert not ones[0].lost.is_set()


@pytest.mark.parametrize("spread", [0.0, 0.45], ids=["at once", "one after the other"])
def test_a_thousand_take_few_round_trips(watched: Watched, hold: Hold, spread: float) -> None:
    ones = [held(watched, f"videos:{n}:k", 3) for n in range(1000)]
    for one in ones:
        one.deadline -= random.uniform(0, spread * 3)
        keepalive.keep(one)
    eventually(lambda: all(one.extended >= 3 for one in ones), within=10)
    assert not any(one.lost.is_set() for one in ones)
    assert len(watched.calls) <= 4 * max(one.extended for one in ones)
    for one in ones:
        assert one.release() is Released.YES


def test_every_lifetime_is_extended_for_itself(memory: MemoryBackend, hold: Hold) -> None:
    short, long = hold(memory, seconds=0.5), hold(memory, "videos:2:k", 4)
    eventually(lambda: short.extended >= 3 and long.extended)
    for one in (short, long):
        found = memory.holder(one.name)
        assert found is not None
        assert found.remaining == pytest.approx(one.lifetime.total_seconds(), rel=0.5)


def test_what_the_user_extended_further_is_left_alone_until_later(watched: Watched, hold: Hold) -> None:
    one = hold(watched, seconds=0.6)
    eventually(lambda: one.extended)
    one.extend(60)
    asked = len(watched.calls)
    time.sleep(0.7)
    assert len(watched.calls) == asked
    assert one.deadline > time.monotonic() + 50


def test_what_the_user_set_to_less_is_renewed_before_that_is_over(memory: MemoryBackend, hold: Hold) -> None:
    one = hold(memory, seconds=60)
    one.extend(0.4)
    eventually(lambda: one.extended)
    assert one.deadline > time.monotonic() + 50
    assert not one.lost.is_set()


def test_what_is_only_watched_is_never_extended_and_lost_at_its_end(watched: Watched, hold: Hold) -> None:
    one = hold(watched, seconds=0.4, renewing=False)
    assert one.lost.wait(2)
    assert watched.calls == []
    assert one.lost_at == pytest.approx(one.deadline, abs=0.1)


def test_keeping_it_again_changes_nothing(watched: Watched, hold: Hold) -> None:
    one = hold(watched, seconds=0.6)
    for _ in range(2000):
        keepalive.keep(one)
    eventually(lambda: one.extended == 3)
    assert len(watched.calls) == 3


def test_an_object_is_kept_again_with_its_next_grant(memory: MemoryBackend, hold: Hold) -> None:
    one = hold(memory, seconds=0.3)
    one.release()
    another = held(memory, seconds=0.3)
    one.grant, one.token, one.deadline = another.grant, another.token, another.deadline
    keepalive.keep(one)
    eventually(lambda: one.extended >= 4)
    assert not one.lost.is_set()


def test_a_blocked_event_loop_does_not_lose_its_reservation(redis_store: str) -> None:
    async def block_the_loop() -> int:
        backend = async_from_url(redis_store)
        sent, lifetime = time.monotonic(), timedelta(seconds=0.4)
        grant = await backend.acquire(NAME, token_hex(16), "host:1", lifetime)
        assert grant is not None
        one = Held(backend, grant, sent, lifetime)
        keepalive.keep(one)
        with closing(from_url(redis_store)) as contender:
            until = time.monotonic() + 1.5
            while time.monotonic() < until:
                assert not is_free(contender)
                time.sleep(0.01)  # noqa: ASYNC251 - the loop stands still
        assert not one.lost.is_set()
        keepalive.let_go(one)
        assert await backend.release(NAME, grant.token) is Released.YES
        await backend.close()
        return one.extended

    assert asyncio.run(block_the_loop()) >= 8


def test_of_two_extensions_at_the_same_time_the_sooner_end_is_believed(memory: MemoryBackend) -> None:
    one = held(memory, seconds=30)
    assert one.grant is not None
    before, now = one.deadline, time.monotonic()
    entry = Entry(one, one.grant, lambda: True)
    one.deadline = now + 3600  # by the user, while our question was on its way
    entry.extended(Extension(1, now + 30, now), before)
    assert one.deadline == now + 30
    one.deadline = now + 3600  # by the user, whose question was sent before our answer came
    entry.moved(one, one.grant, one.deadline, since=now - 1)
    assert one.deadline == now + 30
    one.deadline = now + 3600  # ... and after it
    entry.moved(one, one.grant, one.deadline, since=now + 1)
    assert one.deadline == now + 3600
