"""How tests measure pauses, and what is done at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from tests.waiting import eventually

SLACK = 2.0
"""Seconds that a busy machine may add."""


@contextmanager
def later(action: Callable[[], Any], after: float) -> Iterator[None]:
    timer = threading.Timer(after, action)
    timer.start()
    yield
    timer.join()


def took(pause: Callable[[float], None], seconds: float) -> float:
    before = time.monotonic()
    pause(seconds)
    return time.monotonic() - before


def must_take_less_than(limit: float, work: Callable[[], Any], tries: int = 3) -> None:
    """It takes less than so many seconds, once of a few times: what a busy machine adds it does not add each time."""
    seconds: list[float] = []
    while not seconds or (seconds[-1] >= limit and len(seconds) < tries):
        before = time.monotonic()
        work()
        seconds.append(time.monotonic() - before)
    assert seconds[-1] < limit, f"{limit} s, and it took {seconds}"


def outlives(server: Any, waiter: Any, name: str, lifetime: timedelta) -> None:
    """A watch goes on, and pauses no longer than it is told, whatever becomes of its server; and it listens again."""
    assert waiter.acquire(name, "H", "holder", lifetime)
    with waiter.watch(name) as watch:
        with later(server.kill, 0.3):
            assert took(watch.pause, 5) < 0.4 + SLACK
        for _ in range(3):
            assert took(watch.pause, 0.2) < 0.2 + SLACK
        server.restart()
        with later(lambda: waiter.release(name, "H"), 1):
            eventually(lambda: took(watch.pause, 5) > 0.15, 3, 0)
        assert waiter.acquire(name, "H", "holder", lifetime)
        server.sigstop()
        for _ in range(3):
            assert took(watch.pause, 0.3) < 0.3 + SLACK
        with waiter.watch(name) as fresh:
            assert took(fresh.pause, 0.3) < 0.3 + SLACK
        server.sigcont()
        eventually(lambda: took(watch.pause, 0.5) > 0.4, 5, 0)
