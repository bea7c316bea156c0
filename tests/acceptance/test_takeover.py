"""Processes that are killed, or frozen past the end of their time: somebody else takes over, and nobody is disturbed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from reservable import Reservation
from reservable.backends.base import Backend
from reservable.backends.opening import Store
from reservable.grants import utc
from tests.acceptance import workers
from tests.processes import Worker, race
from tests.stores import DATABASES
from tests.waiting import eventually

LIFETIME = 1.5
EARLY = 0.05
"""Seconds by which two readings of a store's clock may differ on a busy machine."""


def until(backend: Backend) -> datetime:
    """The end of the reservation, as it is now."""
    holder = backend.holder(workers.NAME)
    assert holder is not None
    return holder.until


@pytest.fixture(params=["redis", *DATABASES])
def where(request: pytest.FixtureRequest, fresh_database: Callable[[str], str]) -> str:
    return fresh_database(request.param)


@pytest.fixture
def backend(where: str) -> Iterator[Backend]:
    store = Store(where)
    list(store.blocking.list())
    yield store.blocking
    store.close()


@pytest.fixture(params=["blocking", "asyncio"])
def colour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_killed_holder_is_followed_when_its_time_is_over_and_not_before(
    where: str, colour: str, backend: Backend
):
    with Worker(workers.work, where, colour, LIFETIME) as holder:
        fence = holder.hear(30)  # which includes that a process starts
        first = until(backend)
        eventually(lambda: until(backend) > first)  # it is being extended
        successor = Reservation(backend, workers.NAME, 60)
        assert not successor.acquire()
        holder.kill()
        last = backend.holder(workers.NAME)
        assert last is not None
        killed = time.monotonic()
        assert successor.acquire(wait=30)
        assert time.monotonic() - killed < LIFETIME + 5
        now = backend.holder(workers.NAME)
        assert now is not None
        assert now.since >= last.until - (utc(int(EARLY * 1e6)) - utc(0))
        assert successor.fence is not None
        assert successor.fence > fence


def test_a_holder_that_was_frozen_past_its_end_has_lost_and_disturbs_nobody(
    where: str, colour: str, backend: Backend
):
    with Worker(workers.work, where, colour, LIFETIME) as holder:
        holder.hear(30)
        holder.sigstop()
        successor = Reservation(backend, workers.NAME, 60)
        assert successor.acquire(wait=30)
        fence = successor.fence
        holder.sigcont()
        assert holder.result() == "ReservationLost"
        successor.check()
        assert successor.fence == fence
        assert successor.release() is True


@pytest.mark.parametrize("where", ["redis", "postgresql"], indirect=True)
def test_thirty_processes_that_want_one_name_all_get_it(where: str, backend: Backend):
    waits = race(workers.hold_for, where, 2, 0.02, 10, processes=30, within=120)
    assert all(wait is not None and wait < 10 for each in waits for wait in each)
    assert backend.holder(workers.NAME) is None


def test_five_that_start_and_clean_up_after_a_kill_have_it_one_at_a_time(
    where: str, backend: Backend, tmp_path: Path
):
    log = tmp_path / "log"
    with Worker(workers.hold, where, 2) as killed:
        over = killed.hear(30)
        killed.kill()
    begun = race(workers.boot, where, str(log), 4, processes=5, within=60)
    early = timedelta(seconds=EARLY)
    assert all(time >= over - early for each in begun for time in each)
    lines = [line.split() for line in log.read_text().splitlines()]
    assert len(lines) == 2 * 5 * 4
    for (one, begins), (other, ends) in zip(lines[::2], lines[1::2], strict=True):
        assert (one, begins, ends) == (other, "begins", "ends")
    assert backend.holder(workers.NAME) is None
