"""Finding gets in nobody's way: others change parents, add children and lock what they like meanwhile."""

from __future__ import annotations

from threading import Thread

import pytest
from sqlalchemy import create_engine, event, select, text
from sqlalchemy.engine import Connection

from reservable import BackendError, first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Author, Comment, Video
from tests.sqlalchemy.finding.worlds import (
    KEY,
    REREAD,
    World,
    before_statement,
    close_own_connections,
    fresh_engine,
)
from tests.waiting import eventually

JOINED = select(Video).join(Video.author).where(Author.name == "Ann").order_by(Video.id)

OTHERS = {
    "the parent is updated": "UPDATE authors SET name = 'Ann ' WHERE id = 1",
    "a child is added": "INSERT INTO comments (id, text, video_id) VALUES (9, 'x', 1)",
    "the row itself is updated": "UPDATE videos SET title = 'x' WHERE id = 1",
    "a row is added": "INSERT INTO videos (id, title) VALUES (9, 'x')",
}


def impatient(world: World) -> Connection:
    """A connection that does not wait for locks."""
    engine = fresh_engine(world)

    @event.listens_for(engine, "connect")
    def connect(driver: object, _: object) -> None:
        cursor = driver.cursor()  # type: ignore[attr-defined]
        setting = (
            "SET lock_timeout = '300ms'"
            if world.database == "postgresql"
            else "SET SESSION innodb_lock_wait_timeout = 1"
        )
        cursor.execute(setting)
        cursor.close()

    return world.stack.enter_context(engine.connect())


@pytest.mark.parametrize("what", OTHERS)
def test_between_grant_and_return_nobody_is_blocked(server: World, what: str):
    server.add(Author(id=1, name="Ann", videos=[Video(id=1), Video(id=2)]))
    other = impatient(server)

    def act() -> None:
        other.execute(text(OTHERS[what]))
        other.rollback()

    with before_statement(REREAD, act) as seen:
        assert first_reserved(server.session(), JOINED, KEY).id == 1  # type: ignore[union-attr]
    assert seen


@pytest.mark.parametrize("what", ["the parent is updated", "a child is added"])
def test_while_the_search_itself_is_running_nobody_is_blocked(postgresql: World, what: str):
    """The statement is held up in its middle, with its row locks, by somebody else's claim on the same name."""
    postgresql.add(Author(id=1, name="Ann", videos=[Video(id=1)]))
    first_reserved(postgresql.session(), select(Video).where(Video.id == 0), KEY)  # makes the table
    blocker = postgresql.connect()
    blocker.execute(
        text(
            "INSERT INTO reservations (name, token, owner, fence, since, until) "
            f"VALUES ('videos:1:{KEY}', '', '', 0, 0, 0)"
        )
    )
    found: list[Video | None] = []
    session = postgresql.session()
    thread = Thread(target=lambda: found.append(first_reserved(session, JOINED, KEY)))
    thread.start()
    try:
        watcher = postgresql.connect(isolation_level="AUTOCOMMIT")
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        eventually(lambda: watcher.execute(text(waiting)).scalar())
        other = impatient(postgresql)
        other.execute(text(OTHERS[what]))
        other.rollback()
        assert watcher.execute(text(waiting)).scalar() == 1  # it is still in there
    finally:
        blocker.rollback()
        thread.join(10)
    assert [video.id for video in found if video is not None] == [1]


def test_a_parent_locked_by_others_does_not_hold_up_the_search(server: World):
    server.add(Author(id=1, name="Ann", videos=[Video(id=1)]))
    other = server.connect()
    other.execute(text("SELECT * FROM authors FOR UPDATE"))
    assert first_reserved(server.session(), JOINED, KEY).id == 1  # type: ignore[union-attr]


def test_a_child_added_by_an_open_transaction_does_not_hold_up_the_search(server: World):
    server.add_videos(2)
    other = server.connect()
    other.execute(Comment.__table__.insert(), {"id": 1, "text": "x", "video_id": 1})  # type: ignore[attr-defined]
    statement = select(Video).order_by(Video.id)
    found = take_reserved(server.session(), statement, KEY, limit=5)
    assert sorted(video.id for video in found) == [1, 2]


def test_no_lock_is_left_after_the_find(server: World):
    server.add_videos(2)
    assert first_reserved(server.session(), select(Video).order_by(Video.id), KEY) is not None
    other = impatient(server)
    other.execute(text("SELECT * FROM videos FOR UPDATE"))
    other.execute(text("UPDATE videos SET title = 'x'"))


def test_a_reader_role_that_may_not_lock_is_told_so(postgresql: World):
    """Not "none": a database that refuses is an error."""
    postgresql.add_videos(1)
    first_reserved(postgresql.session(), select(Video).where(Video.id == 0), KEY)
    postgresql.run("DROP ROLE IF EXISTS reader")
    postgresql.run("CREATE ROLE reader LOGIN")
    try:
        postgresql.run("GRANT SELECT ON videos TO reader")
        engine = create_engine(postgresql.engine.url.set(username="reader"))
        try:
            with pytest.raises(BackendError, match="permission denied"):
                first_reserved(postgresql.session(engine), select(Video), KEY)
        finally:
            close_own_connections(engine)
            engine.dispose()
    finally:
        postgresql.run("DROP OWNED BY reader")
        postgresql.run("DROP ROLE reader")
