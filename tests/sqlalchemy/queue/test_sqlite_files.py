"""A queue in a file, in both journal modes: writers wait for each other, and requests do not wait for each other's ends."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, create_engine, event, insert, select, text
from sqlalchemy.orm import Session

from reservable import BackendError
from tests.processes import race
from tests.sqlalchemy.queue.models import Base, Document, Task
from tests.sqlalchemy.queue.rows import added, states
from tests.sqlalchemy.queue.workers import drain

ROWS = 200


@pytest.fixture(params=["WAL", "DELETE"], ids=["write-ahead log", "rollback journal"])
def engine(request: pytest.FixtureRequest, tmp_path: Path, make_engine: Callable[..., Engine]) -> Engine:
    engine = make_engine(f"sqlite:///{tmp_path / 'queue.sqlite'}", connect_args={"timeout": 5})
    with engine.begin() as connection:
        connection.execute(text(f"PRAGMA journal_mode = {request.param}"))
    Base.metadata.create_all(engine)
    return engine


def test_eight_processes_do_every_row_once(session: Session, url: str) -> None:
    session.execute(insert(Task), [{"title": str(number)} for number in range(ROWS)])
    session.commit()
    counts = Counter(pk for one in race(drain, url, 1, processes=8, within=120) for pk in one)
    assert len(counts) == ROWS
    assert set(counts.values()) == {1}
    assert set(states(session).values()) == {("succeeded", 1)}


def by_hand(engine: Engine, how: str) -> Engine:
    """Transactions begin where the user says, as SQLAlchemy's documentation has it."""

    @event.listens_for(engine, "connect")
    def connect(driver: sqlite3.Connection, _: object) -> None:
        driver.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(how)

    return engine


@pytest.fixture
def requests(engine: Engine, make_engine: Callable[..., Engine]) -> Engine:
    """An engine of which each request has one transaction; with a write-ahead log, from its first read on."""
    own = make_engine(engine.url, connect_args={"timeout": 0})
    with engine.connect() as connection:
        reads_begin = connection.scalar(text("PRAGMA journal_mode")) == "wal"
    # With a rollback journal nobody can write while such a transaction has read: there is no waiting for that.
    return by_hand(own, "BEGIN") if reads_begin else own


def test_a_session_that_has_read_can_do_everything(engine: Engine, requests: Engine) -> None:
    with Session(requests) as session, Session(engine) as other:
        document = Document()
        added(session, document, Document())
        assert session.get_one(Document, document.id).priority == 0  # reads, in a transaction that goes on
        other.add(Task())
        other.commit()  # what was read is old by now
        first, second = Document.claim(session, 2)
        first.heartbeat()
        first.complete()
        with second:
            assert document.reserve("download", 60)
            assert document.release("download")
        assert Document.reap(session) == 0
    with Session(engine) as session:
        assert set(states(session, Document).values()) == {("succeeded", 1)}


def test_a_writer_is_waited_for(engine: Engine) -> None:
    path = engine.url.database
    assert path
    writing, finish = threading.Event(), threading.Event()

    def write() -> None:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE tasks SET title = 'theirs'")
        writing.set()
        finish.wait(10)
        other.execute("COMMIT")
        other.close()

    with Session(engine) as session:
        added(session, Task())
        assert session.scalars(select(Task.title)).all() == [None]
        thread = threading.Thread(target=write)
        thread.start()
        assert writing.wait(10)
        timer = threading.Timer(0.3, finish.set)
        timer.start()
        [lease] = Task.claim(session)
        thread.join()
        timer.join()
        assert lease.row.title == "theirs"
        lease.complete()


def test_a_request_that_goes_on_after_its_reservation_keeps_no_other_from_theirs(requests: Engine) -> None:
    with Session(requests) as session:
        added(session, Document(), Document())
    with Session(requests) as slow, Session(requests) as next_one:
        first = slow.scalars(select(Document).order_by(Document.id)).all()[0]  # begins its transaction
        assert first.reserve("download", 60)
        [lease] = Document.claim(slow)
        second = next_one.scalars(select(Document).order_by(Document.id)).all()[1]
        begun = time.monotonic()
        assert second.reserve("download", 60)
        assert not next_one.get_one(Document, first.id).reserve("download", 60)
        [other] = Document.claim(next_one)
        assert time.monotonic() - begun < 4  # and not the five seconds of a busy file
        other.complete()
        next_one.commit()
        assert slow.in_transaction()
        lease.complete()
        assert first.release("download")


def test_a_request_that_takes_the_write_lock_from_its_beginning_is_told_after_a_while(engine: Engine) -> None:
    with Session(engine) as session:
        added(session, Document())
    immediate = by_hand(create_engine(engine.url), "BEGIN IMMEDIATE")
    with Session(immediate) as session:
        document = session.scalars(select(Document)).one()
        begun = time.monotonic()
        with pytest.raises(BackendError, match="locked"):
            document.reserve("download", 60)
        with pytest.raises(BackendError, match="locked"):
            Document.claim(session)
        assert time.monotonic() - begun < 30
        session.commit()
        assert document.reserve("download", 60)
        [lease] = Document.claim(session)
        lease.complete()
    immediate.dispose()
