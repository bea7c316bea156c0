"""The caller's session is never flushed, committed or rolled back, and its transaction stays as good as it was."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import event, select, text
from sqlalchemy.orm import Session

from tests.sqlalchemy.conftest import Place
from tests.sqlalchemy.models import Video

Sessions = Callable[..., Session]
EVENTS = (
    "before_flush",
    "before_commit",
    "after_rollback",
    "after_soft_rollback",
    "after_begin",
    "do_orm_execute",
)


@pytest.fixture
def happened(session: Session, video: Video) -> Counter[str]:
    """What happened to the session since the row was made."""
    counts: Counter[str] = Counter()
    for name in EVENTS:
        event.listen(session, name, lambda *_, name=name: counts.update([name]))
    return counts


@pytest.fixture
def statements(place: Place) -> Iterator[list[str]]:
    """The statements that went through the caller's engine."""
    seen: list[str] = []

    def see(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    event.listen(place.engine, "before_cursor_execute", see)
    yield seen
    event.remove(place.engine, "before_cursor_execute", see)


def use_every_verb(video: Video) -> None:
    assert video.reserve("download")
    assert not video.reserve("download")
    assert video.is_reserved("download")
    assert video.reservation("download").extend(600)
    assert video.release("download")
    assert not video.release("download")
    with video.reservation("download") as handle:
        handle.check()


def test_no_event_and_no_statement_reaches_the_session(session, video, happened, statements):
    use_every_verb(video)
    assert happened == Counter()
    assert statements == []
    assert not session.in_transaction()


def test_pending_and_dirty_objects_stay_as_they_are(session, video, happened):
    assert video.title == "new"
    happened.clear()
    pending = Video(title="pending")
    session.add(pending)
    video.title = "changed"
    use_every_verb(video)
    assert happened == Counter()
    assert pending in session.new
    assert video in session.dirty
    assert video.title == "changed"
    assert pending.id is None


def test_an_open_transaction_stays_open_and_usable(session, video, sessions, place):
    other = sessions(place.engine).get_one(Video, video.id)
    assert other.reserve("download", 600)
    assert video.title == "new"
    transaction = session.get_transaction()
    assert video.reserve("download") is False
    assert session.get_transaction() is transaction
    assert transaction is not None
    assert transaction.is_active
    assert session.scalar(select(Video.title).where(Video.id == video.id)) == "new"
    video.title = "written"
    session.commit()
    assert video.title == "written"


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_uncommitted_writes_are_neither_committed_nor_lost(places, request, sessions, kind):
    request.getfixturevalue(f"{kind}_url")
    place = places(kind)
    session = sessions(place.engine)
    video = Video(title="new")
    session.add(video)
    session.flush()
    use_every_verb(video)
    assert sessions(place.engine).get(Video, video.id) is None
    assert session.scalar(select(Video.title).where(Video.id == video.id)) == "new"
    session.rollback()
    assert sessions(place.engine).get(Video, video.id) is None


def test_a_transaction_that_has_failed_already_does_not_matter(database, sessions):
    session = sessions(database.engine)
    session.add(Video())
    session.commit()
    video = session.scalars(select(Video).limit(1)).one()
    with pytest.raises(Exception, match="nonsense"):
        session.execute(text("nonsense"))
    assert video.reserve("failed")
    assert video.release("failed")
    session.rollback()


def test_a_lifetime_counts_from_the_grant_and_not_from_the_transactions_begin(database, sessions):
    session, rival = sessions(database.engine), sessions(database.engine)
    session.add(Video())
    session.commit()
    video = session.scalars(select(Video).limit(1)).one()  # begins a transaction
    begun = time.monotonic()
    while time.monotonic() < begun + 0.5:
        session.scalar(select(1))
    asked = time.monotonic()
    assert video.reserve("late", 0.4)
    theirs = rival.get_one(Video, video.id)
    assert theirs.reserve("late") is False
    assert theirs.reserve("late", wait=5)
    assert time.monotonic() - asked >= 0.4
    assert theirs.release("late")


def test_verbs_work_from_within_the_sessions_events(session, video):
    released = []
    event.listen(session, "after_commit", lambda _: released.append(video.release("download")))
    assert video.reserve("download")
    video.title = "done"
    session.commit()
    assert released == [True]


def test_a_savepoint_that_is_rolled_back_takes_no_reservation_with_it(session, video):
    assert video.title == "new"
    with session.begin_nested() as savepoint:
        assert video.reserve("download")
        savepoint.rollback()
    assert video.is_reserved("download")
    assert video.release("download")
