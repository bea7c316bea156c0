"""An SQLite file lets one write at a time: what a caller's own open transaction means for its reservations."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, event, select, text
from sqlalchemy.orm import Session

from reservable import BackendError, configure, first_reserved
from tests.pausing import must_take_less_than
from tests.sqlalchemy.models import Base, Video

Sessions = Callable[..., Session]


@pytest.fixture(params=["wal", "delete"])
def journal(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def engine(tmp_path: Path, journal: str, make_engine: Callable[..., Engine]) -> Engine:
    engine = make_engine(f"sqlite:///{tmp_path}/shared.sqlite")
    with engine.connect() as connection:
        connection.execute(text(f"PRAGMA journal_mode={journal}"))
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Video(title="one"), Video(title="two")])
        session.commit()
        session.get_one(Video, 1).reserve("warm", 1)  # makes the table
    return engine


@pytest.fixture
def session(engine: Engine, sessions: Sessions) -> Session:
    return sessions(engine)


def refused_at_once(work: Callable[[], object]) -> None:
    def refused() -> None:
        with pytest.raises(BackendError, match=r"own uncommitted write.*commit or roll back") as caught:
            work()
        assert caught.value.__cause__ is not None

    must_take_less_than(1, refused)


def test_a_write_of_the_callers_own_is_told_at_once(session):
    video = session.get_one(Video, 1)
    assert video.reserve("held", 600)
    session.commit()
    handle = video.reservation("other")
    session.add(Video(title="three"))
    session.flush()
    refused_at_once(lambda: video.reserve("download"))
    refused_at_once(lambda: video.reserve("download", wait=5))
    refused_at_once(lambda: video.release("held"))
    refused_at_once(lambda: video.reservation("held").extend(5))
    refused_at_once(handle.acquire)
    refused_at_once(lambda: first_reserved(session, select(Video), "download"))
    session.commit()
    assert video.reservation("held").held
    assert video.release("held") is True
    assert not video.is_reserved("download")
    assert video.reserve("download") is True


def test_reading_beside_a_write_of_the_callers_own_works(session):
    video = session.get_one(Video, 1)
    session.add(Video(title="three"))
    session.flush()
    assert video.is_reserved("download") is False


def test_a_write_in_a_savepoint_is_told_at_once(session):
    video = session.get_one(Video, 1)
    session.begin_nested()
    video.title = "changed"
    session.flush()
    refused_at_once(lambda: video.reserve("download"))


def test_the_write_of_somebody_else_is_waited_for(session, sessions, engine):
    writer = sessions(engine)
    writer.add(Video())
    writer.flush()
    video = session.get_one(Video, 1)
    timer = threading.Timer(0.3, writer.rollback)
    timer.start()
    assert video.reserve("download") is True
    timer.join()


def test_a_write_to_another_file_does_not_matter(tmp_path, session):
    configure(f"sqlite:///{tmp_path}/elsewhere.sqlite")
    video = session.get_one(Video, 1)
    session.add(Video())
    session.flush()
    assert video.reserve("download")
    assert video.release("download")


def test_a_busy_other_file_is_waited_for_and_not_blamed_on_the_caller(tmp_path, session, make_engine):
    elsewhere = make_engine(f"sqlite:///{tmp_path}/elsewhere.sqlite")
    configure(elsewhere)
    video = session.get_one(Video, 1)
    assert video.reserve("warm")
    session.add(Video())
    session.flush()
    with elsewhere.connect().execution_options(isolation_level="AUTOCOMMIT") as writer:
        writer.execute(text("BEGIN IMMEDIATE"))
        with ThreadPoolExecutor(1) as pool:
            granted = pool.submit(video.reserve, "download")
            with pytest.raises(TimeoutError):
                granted.result(timeout=0.3)
            writer.execute(text("ROLLBACK"))
            assert granted.result(timeout=5) is True


def test_the_same_file_by_another_path_is_recognised(engine, sessions, session, monkeypatch):
    folder, _, name = str(engine.url.database).rpartition("/")
    monkeypatch.chdir(folder)
    configure(f"sqlite:///{name}")
    video = session.get_one(Video, 1)
    session.add(Video())
    session.flush()
    refused_at_once(lambda: video.reserve("download"))


def test_a_first_reservation_beside_a_write_of_the_callers_own_is_told_at_once(
    tmp_path, make_engine, sessions
):
    engine = make_engine(f"sqlite:///{tmp_path}/new.sqlite")
    Base.metadata.create_all(engine)
    session = sessions(engine)
    video = Video()
    session.add(video)
    session.flush()
    refused_at_once(lambda: video.reserve("download"))
    session.commit()
    assert video.reserve("download")


def test_an_open_cursor_of_the_caller(session, journal):
    """WAL: readers do not hinder. Rollback journal: the file cannot be written while it is read."""
    video = session.get_one(Video, 1)
    cursor = session.connection().exec_driver_sql("SELECT id FROM videos")
    assert cursor.fetchone() is not None

    def refused() -> None:
        with pytest.raises(BackendError, match="locked"):
            video.reserve("download")

    if journal == "wal":
        keys = iter(("download", "encode", "upload"))
        must_take_less_than(1, lambda: video.reserve(next(keys)))
        assert video.is_reserved("download")
    else:
        must_take_less_than(6.5, refused)
    assert cursor.fetchone() is not None
    cursor.close()
    session.rollback()
    assert video.is_reserved("download") is (journal == "wal")
    assert (video.release("download") or video.reserve("download")) is True


def begin_by_hand(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def test_a_user_who_begins_transactions_by_hand_can_reserve_beside_a_read(tmp_path, make_engine, sessions):
    """The recipe of SQLAlchemy's documentation for SERIALIZABLE isolation on SQLite."""
    engine = make_engine(f"sqlite:///{tmp_path}/manual.sqlite")
    event.listen(engine, "connect", lambda driver, _: setattr(driver, "isolation_level", None))
    event.listen(engine, "begin", begin_by_hand)
    Base.metadata.create_all(engine)
    with engine.connect() as connection:
        connection.connection.driver_connection.execute("PRAGMA journal_mode=wal")
    session = sessions(engine)
    session.add(Video())
    session.commit()
    video = session.get_one(Video, 1)
    assert video.reserve("download")
    assert video.release("download")


def test_a_database_in_memory_keeps_its_reservations_in_memory(make_engine, sessions):
    engine = make_engine("sqlite://")
    Base.metadata.create_all(engine)
    session = sessions(engine)
    session.add(Video())
    session.flush()
    video = session.get_one(Video, 1)
    assert video.reserve("download")
    assert not video.reserve("download")
    assert video.release("download")
