"""`at_least`: a name is not free again before that long after its grant, however soon the work is done."""

from __future__ import annotations

import time

import pytest

from reservable import InvalidDuration, Reservation, ReservationLost
from tests.handles.conftest import Handles, told
from tests.waiting import eventually


def test_released_early_it_runs_out_when_that_time_is_over(handles: Handles):
    with handles.blocking(60, at_least=0.6):
        granted = time.monotonic()
    assert not handles.is_free
    second = handles.blocking(60)
    assert second.acquire() is False
    assert second.acquire(wait=10) is True
    assert time.monotonic() - granted >= 0.59


def test_handed_over_it_runs_out_then_all_the_same(handles: Handles):
    handle = handles.blocking(60, at_least=0.6)
    granted = time.monotonic()
    assert handle.acquire()
    assert Reservation.loads(handle.dumps(), handle.backend).release() is True
    assert not handles.is_free
    assert handles.blocking(60).acquire(wait=10) is True
    assert time.monotonic() - granted >= 0.59


def test_released_later_it_is_free_at_once(handles: Handles):
    with handles.blocking(60, at_least=0.05):
        time.sleep(0.1)
    assert handles.is_free


def test_the_handle_has_let_go_all_the_same(handles: Handles):
    handle = handles.blocking(60, at_least=30)
    assert handle.acquire()
    assert handle.release() is True
    assert not handle.held
    assert handle.remaining == 0
    assert handle.release() is False
    assert handle.acquire() is False
    holder = handles.store.blocking.holder(handles.name)
    assert holder is not None
    assert 25 < holder.remaining <= 30


def test_what_was_lost_meanwhile_is_not_taken_back(handles: Handles):
    with pytest.raises(ReservationLost), handles.blocking(60, at_least=30) as handle:
        handle.break_()
        other = handles.blocking(60)
        assert other.acquire()
    assert other.held
    other.check()


def test_a_body_that_fails_holds_it_as_long(handles: Handles):
    with pytest.raises(KeyError), handles.blocking(60, at_least=30):
        raise KeyError
    assert not handles.is_free


def test_renewed_it_runs_out_at_its_least_time_and_not_later(shared: Handles):
    with shared.blocking(2, renew=True, at_least=2):
        granted = time.monotonic()
        time.sleep(0.4)
    eventually(lambda: shared.is_free)
    assert 1.95 < time.monotonic() - granted < 5


def test_for_asyncio(handles: Handles):
    async def story() -> None:
        async with handles.awaited(60, at_least=30):
            pass
        assert not handles.is_free

    told(story())


def test_longer_than_the_reservation_itself_is_refused(handles: Handles):
    with pytest.raises(InvalidDuration, match="at_least"):
        handles.blocking(60, at_least=61)
    with pytest.raises(InvalidDuration):
        handles.blocking(60, at_least=0)
