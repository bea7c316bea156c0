"""Answers that are lost, late or never come, through a proxy."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
import redis

from reservable.backends.redis import RedisBackend
from reservable.errors import BackendError
from reservable.grants import Released
from tests.proxy import Proxy

NAME = "videos:1:download"
MINUTE = timedelta(minutes=1)


def test_the_same_grant_after_an_acquire_whose_reply_was_lost(through: RedisBackend, proxy: Proxy) -> None:
    proxy.drop_next_reply()
    grant = through.acquire(NAME, "A", "o", MINUTE)
    assert proxy.dropped == 1
    assert grant is not None
    assert grant.since < grant.until - 59_000_000
    assert through.acquire(NAME, "B", "o", MINUTE) is None


def test_the_same_grant_after_an_acquire_that_was_never_answered(through: RedisBackend, proxy: Proxy) -> None:
    proxy.drop_next_reply(close=False)
    grant = through.acquire_first([NAME, "b"], "A", "o", MINUTE)
    assert grant is not None
    assert grant.name == NAME


def test_a_release_whose_reply_was_lost_says_that_it_does_not_know(
    through: RedisBackend, proxy: Proxy
) -> None:
    through.acquire(NAME, "A", "o", MINUTE)
    proxy.drop_next_reply()
    assert through.release(NAME, "A") is Released.UNKNOWN
    assert through.acquire(NAME, "B", "o", MINUTE)


def test_a_client_that_retries_by_itself_does_not_hide_a_lost_release(proxy: Proxy, url: str) -> None:
    retry = redis.retry.Retry(redis.backoff.NoBackoff(), 3)
    with redis.Redis(port=proxy.port, db=int(url.rpartition("/")[2]), retry=retry) as client:
        backend = RedisBackend(client)
        for token in ("warm", "A"):
            assert backend.acquire(NAME, token, "o", MINUTE)
            if token == "A":
                proxy.drop_next_reply()
            assert backend.release(NAME, token) is (Released.UNKNOWN if token == "A" else Released.YES)
        backend.close()


def test_extend_whose_reply_was_lost_is_answered(through: RedisBackend, proxy: Proxy) -> None:
    through.acquire(NAME, "A", "o", MINUTE)
    proxy.drop_next_reply()
    assert through.extend(NAME, "A", timedelta(hours=1)) is not None


def test_a_connection_cut_while_idle_is_no_lost_reply(through: RedisBackend, proxy: Proxy) -> None:
    through.acquire(NAME, "A", "o", MINUTE)
    proxy.cut()
    assert through.release(NAME, "A") is Released.YES


def test_an_acquire_that_stays_without_answer_is_broken_and_its_token_can_end_it(
    through: RedisBackend, proxy: Proxy
) -> None:
    proxy.stall()
    with pytest.raises(BackendError) as caught:
        through.acquire(NAME, "A", "o", MINUTE)
    assert isinstance(caught.value.__cause__, redis.exceptions.RedisError)
    proxy.resume()
    assert through.release(NAME, "A") is Released.YES


def test_a_late_answer_never_tells_of_more_time_than_there_is(
    through: RedisBackend, proxy: Proxy, url: str, connect: Callable[..., RedisBackend]
) -> None:
    proxy.stall()
    timer = threading.Timer(0.15, proxy.resume)
    timer.start()
    grant = through.acquire(NAME, "A", "o", timedelta(seconds=10))
    timer.join()
    holder = connect(url).holder(NAME)
    assert grant is not None
    assert holder is not None
    assert holder.until.timestamp() * 1_000_000 == pytest.approx(grant.until, abs=2500)
    assert holder.remaining < 9.9
