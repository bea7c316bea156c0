"""The caller's session is neither committed, rolled back nor flushed, and its work stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, select, text
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from reservable import NotSupported, each_reserved, first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Author, Tag, Video
from tests.sqlalchemy.finding.worlds import KEY, World, fresh_engine

WAITING = select(Video).where(Video.path.is_(None)).order_by(Video.id)


@contextmanager
def undisturbed(session: Session) -> Iterator[None]:
    """No flush, commit or rollback of this session in the block."""
    events: list[str] = []

    def listener(name: str) -> Any:
        return lambda *_: events.append(name)

    names = [
        "before_flush",
        "after_flush",
        "before_commit",
        "after_commit",
        "after_rollback",
        "after_soft_rollback",
    ]
    listeners = {name: listener(name) for name in names}
    for name, heard in listeners.items():
        event.listen(session, name, heard)
    yield
    for name, heard in listeners.items():
        event.remove(session, name, heard)
    assert events == []


def test_nothing_is_flushed_committed_or_rolled_back(world: World):
    world.add_videos(5)
    session = world.session()
    session.add(Tag(id=1, name="pending"))
    with undisturbed(session):
        assert first_reserved(session, WAITING, KEY) is not None
        assert len(take_reserved(session, WAITING, KEY, limit=2)) == 2
        assert len(list(each_reserved(session, WAITING, KEY))) == 2
        assert first_reserved(session, WAITING, KEY) is None
    assert len(session.new) == 1


def test_pending_objects_stay_pending_and_are_stored_by_the_callers_commit(world: World):
    world.add_videos(1)
    session = world.session()
    pending = Video(id=2, title="pending")
    session.add(pending)
    found = first_reserved(session, WAITING, KEY)
    assert found is not None
    assert found.id == 1
    assert pending in session.new
    session.commit()
    assert world.session().get_one(Video, 2).title == "pending"


def test_a_pending_object_that_points_at_the_found_row_stays_pending(world: World):
    world.add(Author(id=1, name="a", videos=[Video(id=1)]))
    session = world.session()
    author = session.get_one(Author, 1)
    pending = Video(id=2, author=author)
    session.add(pending)
    found = first_reserved(session, WAITING, KEY)
    assert found is not None
    assert pending in session.new
    session.commit()
    assert pending.author_id == 1


def test_an_object_deleted_and_not_flushed_stays_marked(world: World):
    world.add_videos(2)
    session = world.session()
    doomed = session.get_one(Video, 2)
    session.delete(doomed)
    assert first_reserved(session, WAITING, KEY) is not None
    assert doomed in session.deleted
    session.commit()
    assert world.session().get(Video, 2) is None


def test_the_found_object_belongs_to_the_session_and_its_changes_are_stored(world: World):
    world.add_videos(1)
    session = world.session()
    found = first_reserved(session, WAITING, KEY)
    assert found is not None
    assert found in session
    assert not session.dirty
    found.path = "/there"
    session.commit()
    assert world.session().get_one(Video, 1).path == "/there"


def test_a_rollback_of_the_callers_keeps_the_reservation_and_the_object(world: World):
    world.add_videos(1)
    session = world.session()
    found = first_reserved(session, WAITING, KEY)
    assert found is not None
    found.title = "never stored"
    session.rollback()
    assert found in session
    assert found.title == "video 1"
    assert found.is_reserved(KEY)
    assert found.release(KEY)


def test_the_object_is_usable_after_commit_and_close(world: World):
    world.add_videos(1)
    session = world.session()
    found = first_reserved(session, WAITING, KEY)
    assert found is not None
    session.commit()
    session.close()
    assert found.release(KEY)
    assert world.reserved() == []


def test_the_row_can_be_released_after_it_was_deleted(world: World):
    world.add_videos(1)
    session = world.session()
    found = first_reserved(session, WAITING, KEY)
    assert found is not None
    session.delete(found)
    session.commit()
    assert found.release(KEY)


def test_a_savepoint_of_the_callers_is_left_alone(server: World):
    server.add_videos(2)
    session = server.session()
    with session.begin_nested():
        session.add(Tag(id=1, name="kept"))
        session.flush()
        with undisturbed(session):
            found = first_reserved(session, WAITING, KEY)
    assert found is not None
    session.commit()
    assert server.session().get_one(Tag, 1).name == "kept"


def test_no_transaction_is_begun_on_the_callers_connection(shared: World):
    shared.add_videos(1)
    session = shared.session()
    began: list[Any] = []
    event.listen(session, "after_begin", lambda *arguments: began.append(arguments))
    assert first_reserved(session, WAITING, KEY) is not None
    assert [one for one in began if one[0] is session] == []


def test_a_scoped_session_will_do(world: World):
    world.add_videos(1)
    registry = scoped_session(sessionmaker(world.engine))
    try:
        found = first_reserved(registry, WAITING, KEY)
        assert found is not None
        assert found in registry
    finally:
        registry.remove()


def test_what_is_no_session_is_refused(world: World):
    with pytest.raises(NotSupported, match="Session"):
        first_reserved(world.engine, WAITING, KEY)  # type: ignore[call-overload]


def test_a_session_bound_to_a_connection_finds_committed_rows(shared: World):
    shared.add_videos(2)
    session = shared.session(shared.connect())
    found = first_reserved(session, WAITING, KEY)
    assert found is not None
    assert found.id == 1


def test_a_session_that_binds_the_class_to_an_engine_finds_its_rows(world: World):
    world.add_videos(1)
    session = Session(binds={Video: world.engine})
    world.stack.callback(session.close)
    assert first_reserved(session, WAITING, KEY) is not None


@pytest.mark.parametrize("options", [{"pool_size": 1, "max_overflow": 0, "pool_timeout": 1}])
def test_a_session_that_holds_the_only_connection_of_its_pool_can_find(
    shared: World, options: dict[str, Any]
):
    shared.add_videos(1)
    session = shared.session(fresh_engine(shared, **options))
    session.execute(text("SELECT 1"))
    assert first_reserved(session, WAITING, KEY) is not None
