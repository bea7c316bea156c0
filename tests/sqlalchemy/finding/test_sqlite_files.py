"""A database in a file: in both journal modes, beside the caller's own cursors, reads and writes."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, select, text
from sqlalchemy.orm import Session

from reservable import BackendError, each_reserved, first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Base, Video
from tests.sqlalchemy.finding.worlds import KEY, close_own_connections

ALL = select(Video).where(Video.path.is_(None)).order_by(Video.id)


@pytest.fixture(params=["WAL", "DELETE"], ids=["write-ahead log", "rollback journal"])
def mode(request: pytest.FixtureRequest) -> str:
    mode: str = request.param
    return mode


@pytest.fixture
def engine(sqlite_url: str, mode: str) -> Iterator[Engine]:
    engine = create_engine(sqlite_url)
    with engine.begin() as connection:
        connection.execute(text(f"PRAGMA journal_mode = {mode}"))
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all(Video(id=number, title=f"video {number}") for number in range(1, 51))
        session.commit()
        first_reserved(session, ALL, "to make the table")
    yield engine
    close_own_connections(engine)
    engine.dispose()


def reserved(engine: Engine) -> list[int]:
    with Session(engine) as session:
        return [video.id for video in session.scalars(select(Video)) if video.is_reserved(KEY)]


def test_rows_are_found_by_a_session_that_has_read_and_not_committed(engine: Engine):
    with Session(engine) as session:
        loaded = session.scalars(select(Video).order_by(Video.id)).all()
        assert first_reserved(session, ALL, KEY) is loaded[0]
        assert [video.id for video in take_reserved(session, ALL, KEY, limit=2)] == [2, 3]


def test_rows_are_found_while_the_session_walks_through_a_result(engine: Engine):
    """An ORM result is read whole when its first row is asked for, so nothing is open behind it."""
    with Session(engine) as session:
        got = []
        for number, _ in enumerate(session.scalars(select(Video).order_by(Video.id.desc()))):
            if number < 3:
                got.append(first_reserved(session, ALL, KEY))
        assert [video.id for video in got if video is not None] == [1, 2, 3]


def test_a_cursor_that_is_still_open(engine: Engine, mode: str):
    """With a write-ahead log a reader blocks nobody; with a rollback journal no other connection can write."""
    with Session(engine) as session:
        cursor = session.connection().connection.cursor()
        cursor.execute("SELECT id FROM videos UNION ALL SELECT id FROM videos")
        cursor.fetchone()
        if mode == "WAL":
            assert first_reserved(session, ALL, KEY).id == 1  # type: ignore[union-attr]
            assert cursor.fetchone() is not None
        else:
            with pytest.raises(BackendError, match="locked"):
                first_reserved(session, ALL, KEY)
            assert cursor.fetchone() is not None
        cursor.close()
        assert first_reserved(session, ALL, "later").id == 1  # type: ignore[union-attr]
    assert reserved(engine) == ([1] if mode == "WAL" else [])


def test_the_callers_own_uncommitted_write_is_an_error_at_once(engine: Engine):
    with Session(engine) as session:
        session.add(Video(id=99))
        session.flush()
        began = time.monotonic()
        with pytest.raises(BackendError, match="own uncommitted write"):
            first_reserved(session, ALL, KEY)
        with pytest.raises(BackendError, match="own uncommitted write"):
            next(each_reserved(session, ALL, KEY))
        assert time.monotonic() - began < 2
        session.commit()
        assert first_reserved(session, ALL, KEY).id == 1  # type: ignore[union-attr]


def test_a_write_of_others_is_waited_for(engine: Engine):
    path = engine.url.database
    assert path
    writing, finish = threading.Event(), threading.Event()

    def write() -> None:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE videos SET path = '/theirs' WHERE id = 1")
        writing.set()
        finish.wait(10)
        other.execute("COMMIT")
        other.close()

    thread = threading.Thread(target=write)
    thread.start()
    assert writing.wait(10)
    threading.Timer(0.3, finish.set).start()
    with Session(engine) as session:
        found = first_reserved(session, ALL, KEY)
    thread.join(10)
    assert found is not None
    assert found.id == 2
    assert reserved(engine) == [2]


def test_an_old_snapshot_of_a_write_ahead_log_gets_fresh_values(tmp_path: Path):
    engine = create_engine(f"sqlite:///{tmp_path / 'wal.sqlite'}", isolation_level="AUTOCOMMIT")
    with engine.begin() as connection:
        connection.execute(text("PRAGMA journal_mode = WAL"))
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add(Video(id=1, title="old"))
        session.commit()
    with Session(engine, expire_on_commit=False) as session, engine.connect() as other:
        session.execute(text("BEGIN"))
        video = session.get_one(Video, 1)
        other.execute(text("UPDATE videos SET title = 'new' WHERE id = 1"))
        assert session.execute(text("SELECT title FROM videos")).scalar() == "old"
        assert first_reserved(session, ALL, KEY) is video
        assert video.title == "new"
        session.execute(text("COMMIT"))
    close_own_connections(engine)
    engine.dispose()
