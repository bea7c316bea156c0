"""Lost is said no later than at the end, whatever the store does, and nothing stays blocked by nobody."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

import pytest
import redis

from reservable import keepalive
from reservable.backends.base import Backend
from reservable.backends.memory import MemoryBackend
from reservable.errors import BackendError
from tests.keepalive.doubles import NAME, Held, Watched, extended, is_free, refusing
from tests.proxy import Proxy
from tests.waiting import eventually

Hold = Callable[..., Held]
Connect = Callable[[str], Backend]


def test_what_somebody_broke_is_lost_at_the_next_renewal(url: str, connect: Connect, hold: Hold) -> None:
    operator = connect(url)
    one, other = (hold(connect(url), name, 0.6) for name in (NAME, "videos:2:k"))
    eventually(lambda: one.extended)
    assert operator.break_(NAME)
    assert one.lost.wait(0.6)
    theirs = operator.acquire(NAME, "theirs", "o", timedelta(minutes=1))
    assert theirs is not None
    extended(other, other.extended + 3)
    found = operator.holder(NAME)
    assert found is not None
    assert found.fence == theirs.fence
    assert one.losses == 1


def test_a_store_that_refuses_for_longer_than_the_lifetime(
    watched: Watched, hold: Hold, caplog: pytest.LogCaptureFixture
) -> None:
    one = hold(watched, seconds=0.9)
    watched.trouble = refusing
    assert one.lost.wait(2)
    assert one.lost_at == pytest.approx(one.deadline, abs=0.1)
    assert 4 <= len(watched.calls) <= 16
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 1
    assert NAME in told[0].getMessage()
    assert one.token not in caplog.text


def test_a_store_that_is_back_in_time_loses_nothing_and_is_complained_of_once_each_time(
    watched: Watched, hold: Hold, caplog: pytest.LogCaptureFixture
) -> None:
    one = hold(watched, seconds=0.9)
    for number in (1, 2):
        watched.trouble = refusing
        asked = len(watched.calls)
        eventually(partial(watched.was_asked, asked + 2))
        watched.trouble = lambda _: None
        extended(one, one.extended + 1)
        assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == number
    assert not one.lost.is_set()


def test_an_error_that_is_not_ours_is_no_reason_to_stop_and_is_not_repeated(
    watched: Watched, hold: Hold, caplog: pytest.LogCaptureFixture
) -> None:
    one = hold(watched, seconds=0.9)
    watched.trouble = lambda asked: ValueError(f"cannot do {asked}")
    eventually(partial(watched.was_asked, 2))
    watched.trouble = lambda _: None
    eventually(lambda: one.extended)
    assert "ValueError" in caplog.text
    assert one.token not in caplog.text


def test_one_that_cannot_be_extended_does_not_take_the_others_along(watched: Watched, hold: Hold) -> None:
    def trouble(asked: Sequence[tuple[str, str]]) -> Exception | None:
        return BackendError("no") if any(name == "videos:7:k" for name, _ in asked) else None

    watched.trouble = trouble
    ones = [hold(watched, f"videos:{n}:k", 1.5) for n in range(20)]
    assert ones[7].lost.wait(3)
    time.sleep(1.5)
    assert [n for n, one in enumerate(ones) if one.lost.is_set()] == [7]


def test_a_store_that_hangs_holds_up_no_other_and_leaves_nothing_blocked(
    redis_store: str, connect: Connect, hold: Hold
) -> None:
    address = redis.connection.parse_url(redis_store)
    direct = connect(redis_store)
    with Proxy(address["port"]) as proxy:
        through = connect(f"redis://127.0.0.1:{proxy.port}/{address['db']}")
        one, other = hold(through, NAME, 2), hold(direct, "videos:2:k", 0.5)
        eventually(lambda: one.extended)
        proxy.stall()
        assert one.lost.wait(3)
        assert one.lost_at == pytest.approx(one.deadline, abs=0.1)
        # The store has done what it was asked a third of the lifetime after the last time.
        assert not is_free(direct)
        proxy.resume()
        eventually(lambda: is_free(direct), within=0.5)
        assert not other.lost.is_set()
        assert other.extended >= 8
        assert one.losses == 1


def test_a_connection_that_leads_nowhere_loses_nothing(watched: Watched, hold: Hold) -> None:
    first, answered = iter([True]), threading.Event()

    def trouble(_: object) -> Exception | None:
        if next(first, False):
            answered.wait(30)
            return BackendError("no answer")
        return None

    watched.trouble = trouble
    ones = [hold(watched, f"videos:{n}:k", seconds) for n, seconds in enumerate((1.5, 1.5, 2))]
    for one in ones:
        extended(one, 4)
    answered.set()
    for one in ones:
        extended(one, one.extended + 2)
    assert not any(one.losses for one in ones)


def test_a_store_that_hangs_is_not_asked_by_ever_more_threads(watched: Watched, hold: Hold) -> None:
    watched.replies.clear()
    ones = [hold(watched, f"videos:{n}:k", 0.2 + n / 20) for n in range(20)]
    for one in ones:
        assert one.lost.wait(3)
    assert len(watched.calls) <= 3
    watched.replies.set()
    eventually(lambda: not list(watched.list()))


def test_a_late_answer_for_what_was_let_go_is_undone(
    memory: MemoryBackend, watched: Watched, hold: Hold
) -> None:
    one = hold(watched, seconds=30)
    watched.replies.clear()
    one.extend(0.3)  # so that it is renewed soon
    eventually(lambda: watched.calls)
    keepalive.let_go(one)
    one.grant = None  # it is not released, for its process was interrupted
    watched.replies.set()
    eventually(lambda: is_free(memory))
    assert not one.lost.is_set()
    assert one.extended == 0


def test_a_late_answer_does_not_move_the_time_at_which_it_was_to_run_out(
    memory: MemoryBackend, watched: Watched, hold: Hold
) -> None:
    one = hold(watched, seconds=30)
    watched.replies.clear()
    one.extend(0.3)
    eventually(lambda: watched.calls)
    keepalive.let_go(one, time.monotonic() + 5)
    one.grant = None
    watched.replies.set()

    def left() -> float:
        found = memory.holder(NAME)
        assert found is not None
        return found.remaining

    eventually(lambda: 4 < left() <= 5)


def test_a_late_answer_leaves_alone_what_is_released_by_its_holder(
    memory: MemoryBackend, watched: Watched, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[str] = []
    monkeypatch.setattr(memory, "release", lambda name, _: released.append(name))
    one = hold(watched, seconds=30)
    watched.replies.clear()
    one.extend(0.3)
    eventually(lambda: watched.calls)
    keepalive.let_go(one)
    watched.replies.set()
    asked = len(watched.calls)
    time.sleep(0.3)
    assert released == []
    assert len(watched.calls) == asked


def test_an_object_that_breaks_its_promises_stops_nobody_elses_clock(
    memory: MemoryBackend, hold: Hold, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Held):
        def lose(self, grant: object) -> None:
            raise RuntimeError("I was not to raise")

    broken, sound = hold(memory, seconds=0.2, renewing=False), hold(memory, "videos:2:k", 0.4)
    broken.__class__ = Broken
    eventually(lambda: "not to raise" in caplog.text)
    extended(sound, sound.extended + 3)
