"""reserve, is_reserved and the life of an instance, on every store."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session, make_transient

from reservable import (
    ConfigurationError,
    InvalidDuration,
    InvalidKey,
    Reservable,
    UnidentifiedInstance,
    configure,
)
from reservable.backends.memory import MemoryBackend
from tests.sqlalchemy.conftest import Place
from tests.sqlalchemy.models import Point, Video
from tests.waiting import eventually

Sessions = Callable[..., Session]


@pytest.fixture
def other(place: Place, video: Video, sessions: Sessions) -> Video:
    return sessions(place.engine).get_one(Video, video.id)


def test_one_of_two_gets_the_row(video, other):
    assert video.reserve("download", "+6 hours") is True
    assert other.reserve("download", "+6 hours") is False
    assert other.reserve("encode") is True


def test_everybody_sees_that_a_row_is_reserved_and_nobody_changes_it_by_asking(video, other):
    assert video.is_reserved("download") is False
    assert video.reserve("download", 600)
    assert video.is_reserved("download") is True
    assert other.is_reserved("download") is True
    assert 590 < other.reservation("download").holder().remaining <= 600
    assert video.release("download") is True


def test_a_reservation_that_is_over_is_free_everywhere(video, other):
    assert video.reserve("download", 0.4)
    eventually(lambda: not other.is_reserved("download"))
    eventually(lambda: video.reservation("download").remaining == 0.0)  # SQLite counts in milliseconds
    assert other.reservation("download").holder() is None
    assert other.reserve("download")


def test_the_lifetime_is_not_shorter_than_asked(video, other):
    asked = time.monotonic()
    assert video.reserve("download", 0.4)
    assert other.reserve("download", wait=20)
    assert time.monotonic() - asked >= 0.4


@pytest.mark.parametrize(
    "duration",
    [0, -1, None, True, float("nan"), "soon", datetime(2020, 1, 1, tzinfo=UTC), timedelta(days=40_000)],
)
def test_a_bad_duration_is_refused_before_the_store_is_asked(video, duration):
    for verb in (video.reserve, video.reservation):
        with pytest.raises(InvalidDuration):
            verb("download", duration)
    assert not video.is_reserved("download")
    assert video.reserve("download")
    with pytest.raises(InvalidDuration):
        video.reservation("download", duration)


@pytest.mark.parametrize("key", ["", None, True, 1.5, b"x", ["x"], "\ud800", "x" * 256, lambda: None])
def test_a_bad_key_is_refused_by_every_verb(video, key):
    for verb in (video.reserve, video.release, video.is_reserved, video.reservation):
        with pytest.raises(InvalidKey):
            verb(key)


def test_keys_that_differ_in_case_or_spaces_or_accents_are_different(video):
    keys = [
        "Job",
        "job",
        "job ",
        " job",
        "job\t",
        "jöb",
        "jo\u0308b",
        "ß",
        "ss",
        "🎬",
        "a:b",
        "a%3Ab",
        "{x}",
        "\x00",
    ]
    assert [key for key in keys if not video.reserve(key)] == []
    assert not video.release("JOB")
    assert [key for key in keys if not video.release(key)] == []


def test_an_instance_without_primary_key_writes_nothing(session):
    backend = configure("memory://")
    assert isinstance(backend, MemoryBackend)
    video = Video(title="new")
    session.add(video)
    for verb in (video.reserve, video.release, video.is_reserved, video.reservation):
        with pytest.raises(UnidentifiedInstance):
            verb("download")
    assert list(backend.list()) == []
    assert video in session.new


def test_a_pending_instance_with_an_assigned_key_can_be_reserved(session, video):
    session.delete(video)
    session.commit()
    again = Video(id=video.id)
    session.add(again)
    assert again.reserve("download")
    assert again in session.new
    assert again.release("download")


def test_a_row_known_to_be_deleted_cannot_be_reserved(session, video):
    configure("memory://")
    session.delete(video)
    session.commit()
    for verb in (video.reserve, video.reservation):
        with pytest.raises(UnidentifiedInstance):
            verb("download")
    assert video.release("download") is False


def test_a_row_whose_deletion_was_rolled_back_can_be_reserved(session, video):
    configure("memory://")
    session.delete(video)
    session.flush()
    with pytest.raises(UnidentifiedInstance):
        video.reserve("download")
    session.rollback()
    assert video.reserve("download")


def test_an_object_that_was_never_loaded_stands_for_its_row(place, video):
    configure(place.where or place.url)
    assert video.reserve("download")
    assert Video(id=video.id).reserve("download") is False
    assert Video(id=video.id).is_reserved("download")
    assert Video(id=video.id).release("download") is True


def test_an_object_that_was_never_loaded_needs_a_configured_backend():
    for verb in (Video(id=7).reserve, Video(id=7).release, Video(id=7).is_reserved, Video(id=7).reservation):
        with pytest.raises(ConfigurationError, match="configure"):
            verb("download")


def test_an_object_made_transient_still_stands_for_its_row(session, video):
    configure("memory://")
    session.refresh(video)
    assert video.reserve("download")
    make_transient(video)
    assert video.is_reserved("download")
    assert video.release("download")


def test_an_expired_instance_is_not_loaded(session, video):
    session.execute(text("DELETE FROM videos WHERE id = :id"), {"id": video.id})
    session.commit()
    session.expire(video)  # to load it now would fail
    assert video.reserve("download")
    assert video.is_reserved("download")
    assert video.release("download")


def test_an_unhashable_instance_can_be_reserved(session):
    point = Point(x=3)
    session.add(point)
    session.commit()
    with pytest.raises(TypeError):
        hash(point)
    assert point.reserve("move")
    assert not point.reserve("move")
    assert point.release("move")


def test_only_the_verbs_of_the_contract_are_added_to_the_class():
    added = {name for name in dir(Reservable) if not name.startswith("__")}
    verbs = {"reserve", "release", "is_reserved", "reservation"}
    assert added == verbs | {f"a{verb}" for verb in verbs} | {"reserved", "unreserved"}
