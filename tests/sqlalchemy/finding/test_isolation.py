"""A session in an old transaction is given what is committed now, not what its snapshot shows."""

from __future__ import annotations

import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from reservable import first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Video
from tests.sqlalchemy.finding.worlds import KEY, World, fresh_engine

LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]
WAITING = select(Video).where(Video.path.is_(None)).order_by(Video.id)


@pytest.fixture(params=LEVELS)
def old(request: pytest.FixtureRequest, server: World) -> Session:
    """A session that has looked at the tables before anything else happens."""
    server.add_videos(3)
    session = server.session(fresh_engine(server, isolation_level=request.param))
    # A plain read: at SERIALIZABLE, MariaDB would lock what it reads.
    session.execute(text("SELECT count(*) FROM tags"))
    return session


def test_a_row_changed_since_the_snapshot_comes_with_its_new_values(server: World, old: Session):
    server.run("UPDATE videos SET title = 'new' WHERE id = 1")
    found = first_reserved(old, WAITING, KEY)
    assert found is not None
    assert (found.id, found.title) == (1, "new")


def test_a_row_that_matches_only_in_the_snapshot_is_not_found(server: World, old: Session):
    server.run("UPDATE videos SET path = '/done' WHERE id = 1")
    found = first_reserved(old, WAITING, KEY)
    assert found is not None
    assert found.id == 2
    assert server.reserved() == [2]


def test_a_row_added_since_the_snapshot_is_found(server: World, old: Session):
    server.run("INSERT INTO videos (id, title) VALUES (4, 'late')")
    found = take_reserved(old, WAITING, KEY, limit=9)
    assert [video.title for video in found] == ["video 1", "video 2", "video 3", "late"]


def test_an_object_loaded_from_the_snapshot_is_brought_up_to_date(server: World):
    server.add_videos(1)
    session = server.session(fresh_engine(server, isolation_level="REPEATABLE READ"))
    loaded = session.get_one(Video, 1)
    server.run("UPDATE videos SET title = 'new', rank = 7 WHERE id = 1")
    found = first_reserved(session, WAITING, KEY)
    assert found is loaded
    assert (found.title, found.rank, found.shout) == ("new", 7, "NEW")
    # Only this object: the transaction still sees what it saw.
    seen = session.execute(text("SELECT title FROM videos WHERE id = 1")).scalar()
    assert seen == "video 1"


def test_reservations_made_since_the_snapshot_are_seen(server: World, old: Session):
    server.reserve(1, 2)
    found = first_reserved(old, WAITING, KEY)
    assert found is not None
    assert found.id == 3


def test_the_old_transaction_can_go_on_and_commit(server: World, old: Session):
    server.add_videos(0)
    found = first_reserved(old, WAITING, KEY)
    assert found is not None
    found.path = "/there"
    old.commit()
    with server.engine.connect() as connection:
        assert connection.execute(text("SELECT path FROM videos WHERE id = 1")).scalar() == "/there"


def test_what_the_caller_has_not_committed_is_not_found(server: World):
    server.add_videos(1)
    session = server.session()
    session.add(Video(id=2))
    session.flush()
    session.execute(text("UPDATE videos SET path = '/mine' WHERE id = 1"))
    found = take_reserved(session, WAITING, KEY, limit=5)
    assert [video.id for video in found] == [1]


def test_an_aborted_transaction_of_the_callers_stays_for_the_caller_to_roll_back(postgresql: World):
    postgresql.add_videos(1)
    session = postgresql.session()
    with pytest.raises(Exception, match="no_such_table"):
        session.execute(text("SELECT * FROM no_such_table"))
    found = first_reserved(session, WAITING, KEY)
    assert found is not None
    with pytest.raises(Exception, match="aborted"):
        session.execute(text("SELECT 1"))
    session.rollback()
    assert found.title == "video 1"


def test_time_is_counted_from_the_grant_and_not_from_the_callers_transaction(postgresql: World):
    postgresql.add_videos(1)
    session = postgresql.session()
    began = session.execute(text("SELECT EXTRACT(EPOCH FROM now())")).scalar()
    assert began is not None
    session.execute(text("SELECT pg_sleep(0.5)"))
    found = first_reserved(session, WAITING, KEY, 10)
    assert found is not None
    expires = found.reservation(KEY).expires_at
    assert expires is not None
    assert expires.timestamp() >= float(began) + 10.5
