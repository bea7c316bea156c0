"""What a handle shows and does: its grant, its end, how it learns of a loss, and what it writes in the log."""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.orm import Session

from reservable import (
    AlreadyReserved,
    ConfigurationError,
    InvalidDuration,
    Reservation,
    ReservationLost,
    configure,
    reservation,
)
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


MILLISECOND = timedelta(milliseconds=1)
"""The unit of some stores."""


def same_time(one: datetime, other: datetime) -> bool:
    return abs(one - other) <= MILLISECOND


def test_outside_a_grant_there_is_nothing(video, handle):
    assert handle.name == f"videos:{video.id}:down%20load"
    assert handle.key == "down load"
    assert str(os.getpid()) in handle.owner
    assert (handle.token, handle.fence, handle.expires_at, handle.remaining) == (None, None, None, 0.0)
    assert not handle.held
    assert not handle.lost.is_set()
    assert handle.holder() is None
    assert handle.extend(60) is False
    assert handle.release() is False
    assert not handle.lost.is_set()
    with pytest.raises(ReservationLost):
        handle.check()


def test_inside_a_grant_the_store_and_the_handle_agree(handle, rival):
    assert handle.acquire() is True
    holder = rival.holder()
    assert holder.name == handle.name
    assert holder.owner == handle.owner
    assert holder.fence == handle.fence
    assert handle.expires_at - holder.until <= MILLISECOND
    assert handle.expires_at.utcoffset() == timedelta(0)
    assert abs(handle.expires_at - datetime.now(UTC) - timedelta(seconds=600)) < timedelta(seconds=5)
    assert handle.held
    handle.check()


def test_they_agree_to_the_millisecond(handle, rival):
    """Redis keeps the end by a clock of its own, so that it comes later where the server is held up in between."""

    def agree() -> bool:
        assert handle.acquire()
        holder = rival.holder()
        granted = same_time(holder.until, handle.expires_at) and same_time(
            holder.until, holder.since + timedelta(seconds=600)
        )
        assert handle.extend(300)
        extended = same_time(rival.holder().until, handle.expires_at)
        assert handle.release()
        return granted and extended

    assert any(agree() for _ in range(20))


def test_what_remains_is_never_more_than_the_truth(handle, rival):
    handle.acquire()
    for _ in range(20):
        before = handle.remaining
        truth = rival.holder().remaining
        # The store counts in milliseconds at worst.
        assert truth + 0.001 >= handle.remaining
        assert before - truth < 1


def test_while_held_a_second_acquire_is_refused_and_disturbs_nothing(handle):
    handle.acquire()
    token, until = handle.token, handle.expires_at
    assert handle.acquire() is False
    assert handle.acquire(wait=5) is False
    assert (handle.token, handle.expires_at) == (token, until)


def test_after_an_end_there_is_a_new_grant_with_a_new_token_and_a_higher_fence(handle):
    handle.acquire()
    token, fence = handle.token, handle.fence
    assert handle.release()
    assert handle.acquire()
    assert handle.token != token
    assert handle.fence > fence


def test_a_handle_whose_time_is_over_can_take_the_name_again(video):
    handle = video.reservation("download", 0.4)
    handle.acquire()
    eventually(lambda: handle.holder() is None)
    assert not handle.held
    with handle:
        assert handle.held


def test_extend_sets_what_is_left_and_never_adds(handle, rival):
    handle.acquire()
    assert handle.extend("+1 hour") is True
    assert 3595 < handle.remaining <= 3600
    assert handle.extend(5) is True
    assert handle.remaining <= 5
    assert rival.holder().remaining <= 5
    assert handle.expires_at - rival.holder().until <= MILLISECOND


@pytest.mark.parametrize("duration", [0, -5, None, True, "never"])
def test_a_bad_extension_is_refused_and_changes_nothing(handle, duration):
    handle.acquire()
    until = handle.holder().until
    with pytest.raises(InvalidDuration):
        handle.extend(duration)
    assert same_time(handle.holder().until, until)


def test_a_bystander_sees_and_breaks_but_cannot_release_or_extend(handle, rival):
    handle.acquire()
    assert rival.release() is False
    assert rival.extend(60) is False
    assert not rival.lost.is_set()
    assert handle.held
    assert rival.break_() is True
    assert rival.break_() is False


def test_the_instance_hands_out_the_handle_on_the_grant_that_it_holds(video):
    video.reserve("download", 60)
    assert video.reservation("download").extend("+1 hour")
    assert video.reservation("download").remaining > 3590
    assert video.reservation("download").token == video.reservation("download").token
    with pytest.raises(AlreadyReserved), video.reservation("download"):
        pytest.fail("not re-entrant")
    assert video.reservation("download").held
    assert video.release("download")
    assert not video.reservation("download").held


def test_a_handle_is_not_pickled_by_accident(handle):
    handle.acquire()
    with pytest.raises(TypeError, match="dumps"):
        pickle.dumps(handle)


def test_events_are_logged_with_fields_and_without_tokens(handle, rival, caplog):
    caplog.set_level(logging.DEBUG, logger="reservable")
    tokens = []
    handle.acquire()
    tokens.append(handle.token)
    rival.acquire()
    handle.release()
    handle.acquire()
    tokens.append(handle.token)
    rival.break_()
    handle.extend(60)
    records = [record for record in caplog.records if record.name == "reservable"]
    assert [(record.event, record.levelname) for record in records] == [
        ("granted", "DEBUG"),
        ("refused", "DEBUG"),
        ("released", "DEBUG"),
        ("granted", "DEBUG"),
        ("lost", "WARNING"),
    ]
    for record in records:
        assert record.args["name"] == record.reservation == handle.name
        assert record.args["owner"] == record.owner == handle.owner
        assert handle.name in record.getMessage()
        assert (record.until is None) == (record.event == "refused")
    everything = " ".join(f"{vars(record)} {record.getMessage()}" for record in records)
    assert not any(token in everything for token in tokens)
    assert handle.name in repr(handle)
    assert not any(token in f"{handle!r} {handle.holder()!r} {rival!r}" for token in tokens)


def test_a_name_without_a_model(place):
    if place.where is None:
        with pytest.raises(ConfigurationError):
            reservation("nightly report")
        configure(place.url)
    one, other = reservation("nightly report", "1 hour"), reservation("nightly report", "1 hour")
    assert one.name == "nightly%20report"
    assert one.key == "nightly report"
    with one:
        assert not other.acquire()
    assert other.acquire()
    assert other.release()


def test_options_that_are_given_for_a_grant_that_stands_are_honoured(video):
    told: list[Reservation] = []
    assert video.reserve("encode", 600)
    handle = video.reservation("encode", 600, at_least=300, on_error="keep", on_lost=told.append)
    assert handle.release() is True
    assert video.is_reserved("encode")
    handle.break_()
    assert video.reserve("encode", 600)
    handle = video.reservation("encode", on_lost=told.append)
    handle.break_()
    assert handle.extend(60) is False
    eventually(lambda: told == [handle])


def test_at_least_longer_than_the_grant_that_stands_is_refused(video):
    assert video.reserve("encode", 10)
    with pytest.raises(InvalidDuration):
        video.reservation("encode", 600, at_least=60)
    assert video.reservation("encode").release() is True
    assert not video.is_reserved("encode")
