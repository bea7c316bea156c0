"""How a handle learns that its grant is over or was taken, and that it never takes a dead one for alive."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy.orm import Session

from reservable import Reservation, ReservationLost
from reservable.backends.memory import MemoryBackend
from tests.sqlalchemy.conftest import Place
from tests.sqlalchemy.models import Video
from tests.waiting import eventually

Sessions = Callable[..., Session]


@pytest.fixture
def handle(video: Video) -> Reservation:
    return video.reservation("down load", 600)


@pytest.fixture
def rival(place: Place, video: Video, sessions: Sessions) -> Reservation:
    return sessions(place.engine).get_one(Video, video.id).reservation("down load", 600)


@pytest.mark.parametrize("verb", ["extend", "release", "check"])
def test_each_verb_learns_that_the_grant_was_broken(handle, rival, verb):
    handle.acquire()
    assert rival.break_() is True
    assert rival.acquire()
    if verb == "check":
        with pytest.raises(ReservationLost):
            handle.check()
    else:
        assert (handle.extend(60) if verb == "extend" else handle.release()) is False
    assert handle.lost.is_set()
    assert not handle.held
    assert handle.token is None
    rival.check()
    assert handle.acquire() is False
    rival.release()
    assert handle.acquire() is True
    assert not handle.lost.is_set()


def test_what_is_over_is_not_brought_back_to_life(video):
    handle = video.reservation("download", 0.4)
    handle.acquire()
    eventually(lambda: handle.holder() is None)
    assert handle.extend(60) is False
    assert handle.holder() is None


class Together(MemoryBackend):
    """Two threads have asked before either is answered."""

    def __init__(self) -> None:
        super().__init__()
        self._barrier = threading.Barrier(2, timeout=10)

    def release(self, *arguments: Any) -> Any:
        self._barrier.wait()
        return super().release(*arguments)

    def extend(self, *arguments: Any) -> Any:
        until = super().extend(*arguments)
        self._barrier.wait()
        return until


@pytest.mark.parametrize("verbs", [("release", "release"), ("release", "extend")], ids=str)
def test_a_release_by_another_thread_is_no_loss(verbs):
    handle = Reservation(Together(), "x", 600)
    assert handle.acquire()
    work = {"release": handle.release, "extend": lambda: handle.extend(60)}
    with ThreadPoolExecutor(2) as pool:
        results = [done.result() for done in [pool.submit(work[verb]) for verb in verbs]]
    assert any(results)
    assert handle.token is None
    assert not handle.lost.is_set()
    assert handle.holder() is None
    assert handle.acquire()


def test_a_slow_answer_never_makes_a_dead_grant_look_alive():
    class Slow(MemoryBackend):
        def extend(self, *arguments: Any) -> Any:
            until = super().extend(*arguments)
            time.sleep(0.1)
            return until

        def acquire(self, *arguments: Any) -> Any:
            grant = super().acquire(*arguments)
            time.sleep(0.1)
            return grant

    handle = Reservation(Slow(), "x", 0.05)
    assert handle.acquire() is False
    assert handle.holder() is None
    handle = Reservation(Slow(), "x", 60)
    assert handle.acquire() is True
    assert 59 < handle.remaining < 59.95
    assert handle.extend(0.05) is False
    assert handle.lost.is_set()
