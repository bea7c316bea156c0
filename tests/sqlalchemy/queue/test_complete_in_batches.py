"""`run(complete_in_batches=True)`: rows that are done are completed many at a time, and each is stored or told of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import CheckConstraint, Engine, String, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from reservable import BackendError, Backoff, Lease, Queued, QueueOptions
from reservable.leasing import completing, finishes
from reservable.leasing.desk import Desk
from tests.sqlalchemy.queue.conftest import Sessions
from tests.sqlalchemy.queue.models import Kept, Short, Task
from tests.sqlalchemy.queue.rows import added, states
from tests.sqlalchemy.queue.running import Running
from tests.waiting import eventually


class Base(DeclarativeBase):
    pass


class Cursed(Queued, Base):
    """The database refuses that some of them succeed."""

    __tablename__ = "cursed"
    __queue__ = QueueOptions(max_attempts=1, backoff=Backoff(base=0, jitter=0))
    __table_args__ = (CheckConstraint("title <> 'cursed' OR status <> 'succeeded'"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(20))


def test_a_row_that_is_done_is_stored_soon_though_nothing_else_happens(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    [one] = added(session, Task())
    running = Running(Task, sessions, lambda _: None, batch=50, stop=stop, complete_in_batches=True)
    eventually(lambda: states(session) == {one: ("succeeded", 1)})
    stop.set()
    running.end()


def test_it_takes_one_statement_for_many(
    session: Session, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    added(session, *(Task() for _ in range(40)))
    done: list[Any] = []
    stored: list[int] = []

    def complete_all(leases: Any, **options: Any) -> Any:
        stored.append(len(leases))
        return completing.complete_all(leases, **options)

    monkeypatch.setattr(finishes, "complete_all", complete_all)
    Task.run(sessions, done.append, batch=20, stop=lambda: len(done) == 40, complete_in_batches=True)
    assert sum(stored) == 40
    assert len(stored) <= 10  # two, but for pauses of this machine


def test_what_cannot_be_stored_is_stored_later(
    session: Session,
    sessions: Sessions,
    stop: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ids = added(session, Kept(), Kept())
    move, refused = Desk.move, iter(range(3))  # together, one alone, and its failure

    def cut_off(desk: Desk, *arguments: Any, **options: Any) -> Any:
        if next(refused, None) is not None:
            raise BackendError("connection refused")
        return move(desk, *arguments, **options)

    monkeypatch.setattr(Desk, "move", cut_off)
    running = Running(Kept, sessions, lambda _: None, batch=2, stop=stop, complete_in_batches=True)
    eventually(lambda: set(states(session, Kept).values()) == {("succeeded", 1)})
    stop.set()
    running.end()
    assert "cannot be stored, and are kept: connection refused" in caplog.text
    assert {*session.execute(select(Kept.id, Kept.lease_token))} == {(one, 1) for one in ids}


def test_what_cannot_be_stored_at_the_end_is_told_and_done_again(
    session: Session, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    added(session, Short())
    done: list[Any] = []

    def cut_off(*_: Any, **__: Any) -> Any:
        raise BackendError("connection refused")

    with monkeypatch.context() as patched:
        patched.setattr(Desk, "move", cut_off)
        Short.run(sessions, done.append, stop=lambda: bool(done), complete_in_batches=True)
    assert "1 rows were done and could not be stored" in caplog.text
    done.clear()
    Short.run(sessions, done.append, stop=lambda: bool(done))
    assert set(states(session, Short).values()) == {("succeeded", 2)}


def test_a_row_that_was_taken_away_meanwhile_is_not_completed(
    session: Session, sessions: Sessions, stop: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    [one] = added(session, Task())

    def handler(lease: Lease) -> None:
        session.get_one(Task, one).pause(session)
        session.commit()
        stop.set()

    Task.run(sessions, handler, stop=stop, complete_in_batches=True)
    assert states(session) == {one: ("paused", 0)}
    assert f"lost tasks:{one}" in caplog.text


@pytest.fixture
def refusing(engine: Engine) -> Iterator[Engine]:
    Base.metadata.create_all(engine)
    yield engine
    Base.metadata.drop_all(engine)


@pytest.mark.parametrize("in_batches", [True, False], ids=["in batches", "one by one"])
def test_a_row_that_the_database_refuses_fails_alone(refusing: Engine, in_batches: bool) -> None:
    sessions = sessionmaker(refusing, expire_on_commit=False)
    done: list[Any] = []
    with sessions() as session:
        bad, *good = added(session, *(Cursed(title=title) for title in ("cursed", "a", "b", "c", "d")))
        Cursed.run(
            sessions, done.append, batch=5, stop=lambda: len(done) == 5, complete_in_batches=in_batches
        )
        assert states(session, Cursed) == {bad: ("failed", 1), **dict.fromkeys(good, ("succeeded", 1))}
        last = session.get_one(Cursed, bad).last_error
        assert last is not None
        assert last["type"] == "reservable.errors.BackendError"


def test_a_row_that_somebody_has_locked_holds_up_no_other(
    session: Session, sessions: Sessions, other: Session, stop: threading.Event, engine: Engine
) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("one writer locks everything")
    ids = added(session, *(Task(title="new") for _ in range(6)))
    at_work: list[int] = []

    def handler(lease: Lease) -> None:
        if not at_work:
            other.get_one(Task, lease.row.id).title = "written meanwhile"
            other.flush()
        at_work.append(lease.row.id)

    running = Running(Task, sessions, handler, batch=2, stop=stop, complete_in_batches=True)
    succeeded: Callable[[], int] = lambda: [*states(session).values()].count(("succeeded", 1))  # noqa: E731
    eventually(lambda: succeeded() == 5, within=60)
    assert states(session)[at_work[0]] == ("running", 1)
    other.commit()
    eventually(lambda: succeeded() == 6, within=60)
    stop.set()
    running.end()
    assert sorted(at_work) == ids
