"""The keeper's threads: few, there when they are needed, and gone when nothing is kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial

import pytest
from sqlalchemy import create_engine, text

from reservable import keepalive
from reservable.backends.database import DatabaseBackend
from reservable.backends.memory import MemoryBackend
from reservable.keepalive import keeper, workers
from reservable.keepalive.keeper import Keeper
from tests.keepalive.doubles import Held, extended, held
from tests.waiting import eventually

Hold = Callable[..., Held]


def test_threads_are_there_when_they_are_needed_and_end_when_nothing_is_kept(
    memory: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "IDLE", 0.2)
    monkeypatch.setattr(workers, "IDLE", 0.2)
    before = set(threading.enumerate())
    alone = Keeper()

    def there_are(threads: int) -> bool:
        return len(set(threading.enumerate()) - before) == threads

    for lifetime, threads in ((0.3, 2), (3600, 1)):
        one = held(memory, seconds=lifetime)
        alone.keep(one, None)
        eventually(partial(there_are, threads))
        alone.let_go(one, None)
        one.release()
        eventually(partial(there_are, 0))


def test_without_a_thread_to_be_had_it_is_tried_again_in_time(
    memory: MemoryBackend, hold: Hold, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start, refused = threading.Thread.start, iter(range(2))

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "reservable renewal" and next(refused, None) is not None:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    one = hold(memory, seconds=0.9)
    extended(one, 2)
    assert caplog.text.count("can't start new thread") == 2
    assert not one.lost.is_set()


def test_backends_beside_callers_sessions_share_a_thread_and_leave_the_sessions_alone(
    fresh_database: Callable[[str], str], hold: Hold
) -> None:
    looked: list[str] = []

    def blocks() -> bool:
        looked.append(threading.current_thread().name)
        return True

    before = set(threading.enumerate())
    engine = create_engine(fresh_database("sqlite"), connect_args={"timeout": 0})
    with closing(DatabaseBackend(engine)) as backend:
        ones = [hold(backend.beside(blocks).beside(blocks), f"videos:{n}:k", 1.5) for n in range(5)]
        extended(ones[0], 1)
        with engine.connect() as caller:
            caller.execute(text("BEGIN IMMEDIATE"))
            caller.execute(text("UPDATE reservations SET owner = 'me'"))
            time.sleep(0.3)
            caller.rollback()
        for one in ones:
            extended(one, 3)
            keepalive.let_go(one)
    engine.dispose()
    assert looked == []
    started = set(threading.enumerate()) - before
    assert len([thread for thread in started if thread.name == "reservable renewal"]) == 1


def test_what_is_given_back_at_once_leaves_nothing_behind(memory: MemoryBackend) -> None:
    alone = Keeper()
    for n in range(5000):
        one = held(memory, f"videos:{n % 7}:k", 3600)
        alone.keep(one, None)
        alone.let_go(one, None)
        one.release()
    last = held(memory, seconds=3600)
    alone.keep(last, None)
    eventually(lambda: len(alone._ends) < 2100 and len(alone._news) < 1100)
    assert len(alone._entries) == 1
    alone.let_go(last, None)
