"""An aware datetime means "until then", whenever the reservation is asked for and however often."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dateutil.relativedelta import relativedelta
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session

from reservable import InvalidDuration, Reservation, configure, each_reserved
from reservable.backends.memory import MemoryBackend
from tests.handles.conftest import Handles, told
from tests.sqlalchemy.models import Base, Video
from tests.waiting import eventually

LATE = timedelta(seconds=0.5)
"""What a slow machine may need between the question and the store's clock."""


def in_seconds(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def test_a_handle_that_was_made_earlier_reserves_until_the_instant():
    until = in_seconds(30)
    handle = Reservation(MemoryBackend(), "n", until)
    time.sleep(1)
    assert handle.acquire()
    assert handle.expires_at is not None
    assert handle.expires_at < until + LATE
    assert handle.remaining < 29.5


@pytest.mark.parametrize("text", [False, True])
def test_an_instant_that_has_come_is_refused_before_the_store_is_asked(text: bool):
    until = in_seconds(0.2)
    no_store: Any = object()
    handle = Reservation(no_store, "n", until.isoformat() if text else until)
    time.sleep(0.3)
    with pytest.raises(InvalidDuration):
        handle.acquire()
    with pytest.raises(InvalidDuration):
        handle.acquire(wait=5)


def test_who_waits_is_granted_what_is_left_until_the_instant(handles: Handles):
    holder = handles.blocking(1.0)
    until = in_seconds(8)
    handle = handles.blocking(until, wait=7)
    assert holder.acquire()
    assert handle.acquire()
    assert handle.expires_at is not None
    assert handle.expires_at < until + LATE


def test_who_waits_gives_up_when_the_instant_has_come(handles: Handles):
    holder = handles.blocking(600)
    assert holder.acquire()
    begun = time.monotonic()
    assert handles.blocking(in_seconds(0.5), wait=60).acquire() is False
    assert time.monotonic() - begun < 30

    async def story() -> None:
        assert await handles.awaited(in_seconds(0.5), wait=60).acquire() is False

    told(story())
    assert holder.release()


def test_renewed_it_ends_at_the_instant(shared: Handles):
    until = in_seconds(3)
    handle = shared.blocking(until, renew=True)
    assert handle.acquire()
    assert handle.lost.wait(30)
    assert datetime.now(UTC) >= until - LATE
    eventually(lambda: shared.is_free, within=4)


def test_renewed_until_an_instant_its_loss_is_found_before():
    backend = MemoryBackend()
    handle = Reservation(backend, "n", in_seconds(12), renew=True)
    assert handle.acquire()
    begun = time.monotonic()
    backend.break_("n")
    assert handle.lost.wait(10)
    assert time.monotonic() - begun < 9


def test_released_early_it_does_not_run_beyond_the_instant():
    backend, until = MemoryBackend(), in_seconds(4)
    handle = Reservation(backend, "n", until, at_least=3.9)
    time.sleep(1)
    assert handle.acquire()
    assert handle.release()
    holder = backend.holder("n")
    assert holder is not None
    assert holder.until < until + LATE


def test_calendar_months_are_counted_from_the_grant():
    backend = MemoryBackend()
    handle = Reservation(backend, "n", relativedelta(months=1))
    assert handle.acquire()
    assert handle.expires_at is not None
    assert abs(handle.expires_at - (datetime.now(UTC) + relativedelta(months=1))) < timedelta(hours=1)


def test_every_row_that_is_found_is_reserved_until_the_instant():
    configure("memory://")
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all(Video(title=str(number)) for number in range(3))
        session.commit()
        until, seen = in_seconds(30), 0
        for video in each_reserved(session, select(Video), "download", until):
            expires_at = video.reservation("download").expires_at
            assert expires_at is not None
            assert expires_at < until + LATE
            seen += 1
            time.sleep(0.6)
        assert seen == 3
        rows = each_reserved(session, select(Video), "upload", in_seconds(0.5))
        next(rows)
        time.sleep(0.6)
        with pytest.raises(InvalidDuration):
            next(rows)
