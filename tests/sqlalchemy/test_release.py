"""Who gives back what: an instance its own grant and nothing else, an operator whatever stands."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.orm import Session, object_session

from reservable import InvalidDuration, configure
from reservable.sqlalchemy.mixin import holdings_of
from tests.sqlalchemy.conftest import Place
from tests.sqlalchemy.models import Video
from tests.waiting import eventually

Sessions = Callable[..., Session]


@pytest.fixture
def other(place: Place, video: Video, sessions: Sessions) -> Video:
    """The same row, loaded by somebody else."""
    return sessions(place.engine).get_one(Video, video.id)


def in_thread(work: Callable[[], Any]) -> Any:
    """What the work returns in a thread of its own that has ended by then."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def test_release_gives_the_row_back(video, other):
    assert video.reserve("download")
    assert video.release("download") is True
    assert not video.is_reserved("download")
    assert other.reserve("download")


def test_releasing_twice_releases_once(video):
    video.reserve("download")
    assert video.release("download") is True
    assert video.release("download") is False


def test_release_of_one_key_leaves_the_others(video):
    video.reserve("download")
    video.reserve("encode")
    assert video.release("download")
    assert video.is_reserved("encode")


def test_a_refused_instance_does_not_release_the_holders(video, other):
    assert video.reserve("download")
    assert not other.reserve("download")
    assert other.release("download") is False
    assert video.is_reserved("download")


def test_an_instance_that_never_tried_releases_whoever_holds_it(video, other):
    video.reserve("download")
    assert other.release("download") is True
    assert not video.is_reserved("download")
    assert video.release("download") is False


def test_an_operator_finds_nothing_to_release_on_a_free_row(video):
    assert video.release("download") is False


def test_a_release_after_expiry_says_false(video):
    assert video.reserve("download", 1)
    eventually(lambda: not video.is_reserved("download"))
    assert video.release("download") is False


def test_a_release_after_expiry_and_takeover_leaves_the_next_holder_alone(video, other):
    assert video.reserve("download", 1)
    assert other.reserve("download", 600, wait=20)
    assert video.release("download") is False
    assert other.is_reserved("download")
    assert other.release("download") is True


def test_a_handle_counts_as_an_attempt(video, other):
    with video.reservation("download"):
        assert not other.reservation("download").acquire()
        assert other.release("download") is False
        assert video.is_reserved("download")


def test_a_handle_that_was_only_made_is_no_attempt(video, other):
    video.reserve("download")
    other.reservation("download")
    assert other.release("download") is True


def test_a_handle_of_a_bystander_cannot_release(video, other):
    video.reserve("download")
    assert other.reservation("download").release() is False
    assert video.is_reserved("download")


def test_reserving_again_is_refused_and_disturbs_nothing(video):
    assert video.reserve("download", 600)
    before = video.reservation("download").holder()
    assert video.reserve("download", 1) is False
    until = video.reservation("download").holder().until
    assert abs(until - before.until).total_seconds() < 1  # Redis tells it to some milliseconds
    assert video.release("download") is True


def test_another_thread_releases_the_grant_of_a_shared_instance(video):
    assert video.reserve("download")
    assert in_thread(lambda: video.release("download")) is True
    assert not video.is_reserved("download")


def test_a_thread_that_was_refused_does_not_release_the_grant_of_its_neighbour(video):
    assert video.reserve("download")

    def refused_and_released() -> tuple[bool, bool]:
        return video.reserve("download"), video.release("download")

    assert in_thread(refused_and_released) == (False, False)
    assert video.is_reserved("download")


def test_a_thread_is_not_taken_for_one_that_has_ended(video):
    """Python gives the id of a thread that has ended to the next one."""
    assert in_thread(lambda: video.reserve("download"))
    for _ in range(50):
        assert in_thread(lambda: (video.reserve("download"), video.release("download"))) == (False, False)
    assert video.is_reserved("download")
    assert video.release("download") is True  # given none itself, and never refused


def test_each_thread_releases_its_own_grant(video):
    assert video.reserve("download", 0.4)
    assert in_thread(lambda: video.reserve("download", 600, wait=5))
    assert video.release("download") is False
    assert video.is_reserved("download")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_a_copy_holds_nothing_and_shows_no_token(video, copied):
    video.reserve("download")
    token = video.reservation("download").token
    assert token not in repr(vars(video))
    assert token.encode() not in pickle.dumps(video)
    twin = copied(video)
    assert token not in repr(vars(twin))
    assert not holdings_of(twin).has_tried(video.reservation("download").name)
    assert video.reservation("download").held
    assert video.release("download") is True


def test_a_copy_that_was_refused_does_not_release_its_originals_grant(session, video):
    video.reserve("download")
    twin = copy.copy(video)
    assert not twin.reserve("download")
    assert twin.release("download") is False
    assert video.release("download") is True


def test_a_pickled_instance_is_an_operator_where_it_arrives(session, video):
    video.reserve("download")
    twin = pickle.loads(pickle.dumps(video))
    session.expunge(video)
    session.add(twin)
    assert twin.release("download") is True
    assert video.release("download") is False


def test_a_detached_instance_gives_back_its_grant(session, video):
    video.reserve("download")
    session.expunge(video)
    assert video.release("download") is True


def test_an_instance_of_a_closed_session_gives_back_its_grant(session, video):
    video.reserve("download")
    session.commit()
    session.close()
    assert video.reservation("download").extend("+1 hour")
    assert video.release("download") is True


def test_the_row_of_a_holder_may_be_deleted_and_is_then_released(session, other, video):
    video.reserve("download")
    session.delete(video)
    session.commit()
    assert video.release("download") is True
    assert not other.is_reserved("download")


def test_a_flushed_row_that_was_rolled_back_is_still_released(session):
    configure("memory://")  # beside a flushed row, nobody else can write to an SQLite file
    video = Video(title="never there")
    session.add(video)
    session.flush()
    assert video.reserve("download")
    session.rollback()
    assert video.release("download") is True


def test_a_rollback_leaves_the_reservation_standing(session, video, other):
    video.reserve("download")
    session.rollback()
    assert other.is_reserved("download")
    assert video.release("download") is True


def test_a_row_whose_primary_key_has_changed_is_released_as_what_it_was(session, place, sessions):
    video, other = Video(title="moves"), Video(title="stays")
    session.add_all([video, other])
    session.commit()
    was, target = video.id, other.id
    session.delete(other)
    session.commit()
    elsewhere = Video(id=target)
    sessions(place.engine).add(elsewhere)
    assert video.reserve("download")
    assert elsewhere.reserve("download")
    video.id = target
    session.commit()
    assert video.release("download") is True
    assert video.release("download") is False
    assert elsewhere.is_reserved("download")
    old = Video(id=was)
    sessions(place.engine).add(old)
    assert not old.is_reserved("download")


def test_a_detached_instance_needs_no_session_to_be_released_in_the_default_table(session, video, other):
    assert video.reserve("download")
    assert not other.reserve("download")
    for instance in (video, other):
        its = object_session(instance)
        assert its is not None
        its.expunge(instance)
    assert other.release("download") is False
    assert video.release("download") is True
    assert video.release("download") is False


def test_an_attempt_that_raised_makes_no_operator(video, other):
    assert other.reserve("download")
    with pytest.raises(InvalidDuration):
        video.reserve("download", "soon")
    assert video.release("download") is False
    assert other.is_reserved("download")
