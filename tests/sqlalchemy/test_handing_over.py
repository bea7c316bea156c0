"""dumps() and loads(): a grant goes on in another process, and nobody else's text does anything."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.orm import Session

from reservable import InvalidHandle, Reservation, ReservationLost, configure
from tests.processes import Worker
from tests.sqlalchemy import workers
from tests.sqlalchemy.conftest import Place
from tests.sqlalchemy.models import Video
from tests.waiting import eventually


@pytest.fixture
def handle(shared_place: Place, sessions: Callable[..., Session]) -> Reservation:
    """A handle on the row of a model, held."""
    session = sessions(shared_place.engine)
    video = Video()
    session.add(video)
    session.commit()
    handle = video.reservation("download", 600)
    assert handle.acquire()
    session.commit()
    return handle


@pytest.fixture
def where(shared_place: Place) -> str:
    return shared_place.where or shared_place.url


@pytest.mark.parametrize("shared_place", ["redis", "postgresql"], indirect=True)
def test_another_process_checks_extends_and_releases(handle, where):
    with Worker(workers.take_over, handle.dumps(), where) as worker:
        remaining, extended, released = worker.result()
    assert 3590 < remaining <= 3600
    assert extended is True
    assert released is True
    assert handle.release() is False
    assert handle.lost.is_set()


def test_check_learns_of_an_extension_by_the_other_side(handle):
    assert Reservation.loads(handle.dumps(), handle.backend).extend(3600)
    handle.check()
    assert 3590 < handle.remaining <= 3600


def test_a_loaded_handle_is_the_same_grant(handle, where):
    loaded = Reservation.loads(handle.dumps(), where)
    for fact in ("name", "key", "token", "owner", "fence", "expires_at"):
        assert getattr(loaded, fact) == getattr(handle, fact)
    assert loaded.held
    assert loaded.extend(1200)
    assert loaded.acquire() is False
    assert loaded.release() is True
    assert handle.extend(5) is False
    loaded.backend.close()


def test_a_loaded_handle_is_released_by_a_with_block_or_not_entered(handle, where):
    loaded = Reservation.loads(handle.dumps(), where)
    assert loaded.release()
    with loaded:
        assert loaded.held
        assert handle.extend(5) is False
    loaded.backend.close()


def test_without_a_backend_the_configured_one_is_meant(handle, where):
    configure(where)
    assert Reservation.loads(handle.dumps()).release() is True


def test_a_wrong_token_owns_nothing(handle, where):
    facts = json.loads(handle.dumps())
    facts[3] = "0" * 32
    loaded = Reservation.loads(json.dumps(facts), handle.backend)
    assert loaded.extend(60) is False
    assert loaded.lost.is_set()
    assert Reservation.loads(json.dumps(facts), handle.backend).release() is False
    facts[2] = "videos:0:download"
    assert Reservation.loads(json.dumps(facts), handle.backend).release() is False
    handle.check()


def test_a_stale_handle_owns_nothing(handle):
    text = handle.dumps()
    assert handle.release()
    assert handle.acquire()
    stale = Reservation.loads(text, handle.backend)
    with pytest.raises(ReservationLost):
        stale.check()
    assert Reservation.loads(text, handle.backend).release() is False
    assert Reservation.loads(text, handle.backend).extend(5) is False
    handle.check()


def test_a_handle_that_was_loaded_after_its_end_is_over(handle):
    handle.extend(0.05)
    text = handle.dumps()
    eventually(lambda: handle.holder() is None)
    late = Reservation.loads(text, handle.backend)
    assert not late.held
    assert late.remaining == 0
    assert late.release() is False


def test_only_what_is_held_can_be_handed_over(handle):
    assert handle.release()
    with pytest.raises(ReservationLost):
        handle.dumps()


def test_another_prefix_is_another_store(handle):
    text = json.loads(handle.dumps())
    text[1] = "shop:"
    with pytest.raises(InvalidHandle, match="shop:"):
        Reservation.loads(json.dumps(text), handle.backend)


SOUND: list[Any] = [
    "reservable/1",
    "",
    "videos:1:download",
    "abc123",
    5,
    1,
    9_999_999_999_999_999,
    "host:1",
    0,
]


def changed(place: int, value: Any) -> str:
    return json.dumps([*SOUND[:place], value, *SOUND[place + 1 :]])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "{}",
        "[]",
        "null",
        "5",
        None,
        5,
        b"\xff",
        "[" * 100_000,
        json.dumps(SOUND[:-1]),
        json.dumps([*SOUND, 1]),
        json.dumps(dict.fromkeys("abcdefgh")),
        changed(0, "reservable/2"),
        changed(0, ["reservable/1"]),
        changed(1, None),
        changed(2, ""),
        changed(2, "vidéos:1:x"),
        changed(2, "a\nb"),
        changed(2, "\ud800"),
        changed(2, "x" * 1000),
        changed(3, ""),
        changed(3, "a b"),
        changed(3, "\x00"),
        changed(3, 5),
        changed(4, True),
        changed(4, 1.5),
        changed(5, -1),
        changed(6, 10**30),
        changed(6, "1"),
        changed(7, "\ud800"),
        changed(7, None),
        changed(8, None),
        changed(8, -1),
    ],
    ids=range(34),
)
def test_text_that_is_not_ours_is_refused_and_not_repeated(text):
    configure("memory://")
    with pytest.raises(InvalidHandle) as refused:
        Reservation.loads(text)
    assert isinstance(refused.value, ValueError)
    assert "abc123" not in "".join(traceback.format_exception(refused.value)).partition("Error")[2]


def test_the_sound_text_that_the_others_are_made_from_is_accepted():
    configure("memory://")
    assert Reservation.loads(json.dumps(SOUND)).release() is False
