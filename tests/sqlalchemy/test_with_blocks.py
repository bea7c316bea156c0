"""with video.reservation(...): the body runs with the reservation or not at all, and its own error comes out."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from reservable import (
    AlreadyReserved,
    BackendError,
    ConfigurationError,
    Reservation,
    ReservationLost,
    configure,
)
from reservable.backends.memory import MemoryBackend
from tests.servers import start_redis
from tests.sqlalchemy.conftest import Place
from tests.sqlalchemy.models import Video
from tests.waiting import eventually

Sessions = Callable[..., Session]


@pytest.fixture
def other(place: Place, video: Video, sessions: Sessions) -> Video:
    return sessions(place.engine).get_one(Video, video.id)


def test_it_holds_in_the_body_and_releases_at_the_end(video, other):
    with video.reservation("download", "+6 hours") as handle:
        assert isinstance(handle, Reservation)
        assert handle.held
        assert other.is_reserved("download")
    assert not other.is_reserved("download")
    assert handle.token is None


@pytest.mark.parametrize("wait", [None, 0, 0.1])
def test_a_refused_body_does_not_run(video, other, wait):
    video.reserve("download", 600)
    with pytest.raises(AlreadyReserved) as refused, other.reservation("download", wait=wait):
        pytest.fail("the body ran")
    holder = refused.value.holder
    assert holder is not None
    assert holder.owner == video.reservation("download").owner
    assert holder.fence == video.reservation("download").fence
    assert holder.owner in str(refused.value)
    assert video.reservation("download").held


def test_it_waits_as_long_as_it_was_told(video, other):
    video.reserve("download", 0.2)
    with other.reservation("download", wait=5):
        assert not video.reservation("download").held


@pytest.mark.parametrize("error", [KeyError("x"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_it_releases_when_the_body_raises(video, other, error):
    with pytest.raises(type(error)), video.reservation("download"):
        raise error
    assert not other.is_reserved("download")


def test_keep_leaves_it_standing_under_an_exception(video, other):
    with pytest.raises(KeyError), video.reservation("download", 600, on_error="keep"):
        raise KeyError
    assert other.is_reserved("download")
    assert video.release("download") is True


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_keep_does_not_keep_under_interrupts(video, other, error):
    with pytest.raises(type(error)), video.reservation("download", on_error="keep"):
        raise error
    assert not other.is_reserved("download")


def test_keep_releases_when_the_body_ends_well(video, other):
    with video.reservation("download", on_error="keep"):
        pass
    assert not other.is_reserved("download")


def test_only_known_ways_to_treat_errors_are_accepted(video):
    with pytest.raises(ConfigurationError, match="on_error"):
        video.reservation("download", on_error="ignore")


def test_a_loss_under_a_body_that_ended_well_is_told(video):
    with pytest.raises(ReservationLost), video.reservation("download", 0.4) as handle:
        eventually(lambda: handle.holder() is None)
        assert not handle.held
    assert handle.lost.is_set()


def test_a_loss_that_the_body_learned_of_is_told_too(video, other):
    with pytest.raises(ReservationLost), video.reservation("download") as handle:
        other.reservation("download").break_()
        assert not handle.extend(60)


@pytest.mark.parametrize("learned", [True, False])
def test_the_bodys_own_error_comes_out_of_a_lost_reservation(video, other, learned):
    with pytest.raises(KeyError), video.reservation("download") as handle:
        other.reservation("download").break_()
        assert other.reserve("download")
        if learned:
            handle.extend(60)
        raise KeyError
    assert other.is_reserved("download")


def test_a_release_in_the_body_ends_it_and_the_exit_does_nothing(video, other):
    with video.reservation("download") as handle:
        assert handle.release()
        assert other.reserve("download")
    assert other.is_reserved("download")


def test_the_sql_error_of_the_body_comes_out_and_the_row_is_free(database, sessions):
    session = sessions(database.engine)
    session.add(Video())
    session.commit()
    video = session.query(Video).first()
    with pytest.raises(DBAPIError), video.reservation("sql"):
        session.execute(text("nonsense"))
    session.rollback()
    assert not video.is_reserved("sql")


class Breaking(MemoryBackend):
    """A store that stops answering, or answers with an error that it should not have."""

    error: Exception | None = None

    def release(self, *arguments):
        if self.error is not None:
            raise self.error
        return super().release(*arguments)


@pytest.mark.parametrize("trouble", [BackendError("down"), ConfigurationError("no table"), OSError("raw")])
def test_the_bodys_own_error_comes_out_of_a_broken_store(trouble, caplog):
    backend = Breaking()
    configure(backend)
    handle = Video(id=1).reservation("download")
    with pytest.raises(KeyError), handle:
        backend.error = trouble
        raise KeyError
    assert "videos:1:download" in caplog.text
    assert handle.token not in caplog.text
    backend.error = None
    assert handle.release() is True  # the token is kept until the store has confirmed


def test_a_body_that_ended_well_over_a_broken_store_tells_of_the_store():
    backend = Breaking()
    configure(backend)
    with pytest.raises(BackendError), Video(id=1).reservation("download") as handle:
        backend.error = BackendError("down")
    assert handle.token is not None
    assert not handle.held  # it may have been released all the same
    backend.error = None
    assert handle.release() is True


def test_the_bodys_own_error_comes_out_of_a_server_that_was_stopped(redis_url):
    with start_redis() as server:
        configure(server.url)
        with pytest.raises(KeyError), Video(id=1).reservation("download") as handle:
            server.kill()
            raise KeyError
        with pytest.raises(BackendError):
            handle.release()
        server.restart()
        assert handle.release() is True


def test_a_forked_child_neither_releases_nor_holds(shared_place, sessions):
    session = sessions(shared_place.engine)
    video = Video()
    session.add(video)
    session.commit()
    with video.reservation("download", 600) as handle:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # since 3.12, where other threads are running
            child = os.fork()
        if child == 0:
            try:
                held = handle.held or bool(handle.remaining)
                released = video.release("download") or handle.release() or handle.extend(1)
                handle.__exit__(None, None, None)
                unseen = not video.is_reserved("download")  # asks on a connection of its own
                os._exit(held + 2 * released + 4 * unseen)
            finally:
                os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        handle.check()
        assert handle.extend(60)


def test_a_handle_is_used_from_any_thread(video):
    with video.reservation("download") as handle:
        thread = threading.Thread(target=handle.release)
        thread.start()
        thread.join()
        assert not video.is_reserved("download")
