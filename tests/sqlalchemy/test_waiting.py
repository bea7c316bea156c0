"""reserve(wait=...): how long it keeps trying, by which clock, and what it does meanwhile."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

import pytest
from sqlalchemy.orm import Session

from reservable import InvalidDuration
from reservable.backends.memory import MemoryBackend
from tests.sqlalchemy.conftest import Place
from tests.sqlalchemy.models import Video

Sessions = Callable[..., Session]


@pytest.fixture
def other(place: Place, video: Video, sessions: Sessions) -> Video:
    return sessions(place.engine).get_one(Video, video.id)


def seconds(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


@pytest.mark.parametrize("wait", [None, 0, 0.0, 0.3, "1 second", math.inf])
def test_a_free_row_is_granted_whatever_the_wait(video, wait):
    assert video.reserve("download", wait=wait) is True


@pytest.mark.parametrize("wait", [None, 0])
def test_one_try_does_not_sleep(video, other, wait, monkeypatch):
    video.reserve("download")
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("slept"))
    assert other.reserve("download", wait=wait) is False


def test_a_busy_row_is_refused_when_the_wait_is_over(video, other):
    video.reserve("download", 600)
    other.is_reserved("download")
    took = seconds(lambda: other.reserve("download", wait=0.3))
    assert 0.3 <= took < 1.5
    assert other.release("download") is False


def test_a_row_that_becomes_free_is_granted(video, other):
    video.reserve("download", 600)
    timer = threading.Timer(0.2, video.release, ["download"])
    timer.start()
    assert other.reserve("download", wait=10) is True
    timer.join()
    assert video.reserve("download") is False


def test_waiting_without_limit_ends_with_the_holders_time(video, other):
    video.reserve("download", 0.3)
    took = seconds(lambda: other.reserve("download", wait=math.inf))
    assert 0.2 <= took < 3
    assert other.reservation("download").held


@pytest.mark.parametrize("place", ["memory", "postgresql"], indirect=True)
def test_the_wait_does_not_end_with_the_holders_time_when_that_is_extended(video, other):
    video.reserve("download", 1)
    handle = video.reservation("download")
    timer = threading.Timer(0.1, handle.extend, [600])
    timer.start()
    assert other.reserve("download", wait=1.2) is False
    timer.join()
    assert handle.held


def test_a_wait_inside_an_open_transaction_is_as_long_as_outside(video, other):
    video.reserve("download", 0.4)
    assert other.title == "new"  # the transaction of a reader
    took = seconds(lambda: other.reserve("download", wait=5))
    assert 0.2 <= took < 3
    assert other.reservation("download").held


@pytest.mark.parametrize("step", [3600, -3600])
def test_a_wait_is_measured_by_the_monotonic_clock(video, other, step, monkeypatch):
    real = time.time
    begun = time.monotonic()
    jump = lambda: real() + (step if time.monotonic() > begun + 0.1 else 0)  # noqa: E731
    video.reserve("download", 600)
    other.is_reserved("download")
    monkeypatch.setattr(time, "time", jump)
    monkeypatch.setattr(time, "time_ns", lambda: int(jump() * 1e9))
    took = seconds(lambda: other.reserve("download", wait=0.4))
    assert 0.4 <= took < 2
    assert video.reservation("download").held


@pytest.mark.parametrize("wait", [-1, float("nan"), "soon", True, "-1 s"])
def test_a_bad_wait_is_refused(video, wait):
    with pytest.raises(InvalidDuration):
        video.reserve("download", wait=wait)
    with pytest.raises(InvalidDuration):
        video.reservation("download", wait=wait)
    assert not video.is_reserved("download")


def test_the_row_is_asked_for_in_growing_random_steps(monkeypatch):
    class Counting(MemoryBackend):
        tries = 0

        def acquire(self, *arguments):
            self.tries += 1
            return super().acquire(*arguments)

    counting = Counting()
    monkeypatch.setattr(Video, "__reservable_backend__", counting, raising=False)
    Video(id=1).reserve("x", 600)
    Video(id=1).reserve("x", wait=1)
    assert 8 < counting.tries < 60
