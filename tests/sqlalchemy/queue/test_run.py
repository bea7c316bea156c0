"""`run`: a pool of threads and a handler, on every database."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, StaticPool, func, insert
from sqlalchemy.orm import Session, sessionmaker

from reservable import BackendError, Cancel, ConfigurationError, Lease, NotSupported
from tests.sqlalchemy.queue.conftest import Sessions
from tests.sqlalchemy.queue.models import Base, Short, Stage, Task
from tests.sqlalchemy.queue.rows import added, states
from tests.sqlalchemy.queue.running import Running
from tests.waiting import eventually

IN_BATCHES = pytest.mark.parametrize("in_batches", [False, True], ids=["one by one", "in batches"])


@IN_BATCHES
@pytest.mark.parametrize(("concurrency", "batch"), [(1, 1), (4, 1), (4, 20)])
def test_every_row_is_handled_once(
    session: Session, sessions: Sessions, concurrency: int, batch: int, in_batches: bool
) -> None:
    session.execute(insert(Task), [{"title": str(number)} for number in range(60)])
    session.commit()
    done: list[int] = []
    Task.run(
        sessions,
        lambda lease: done.append(lease.pk[0]),
        concurrency=concurrency,
        batch=batch,
        stop=lambda: len(done) >= 60,
        complete_in_batches=in_batches,
    )
    assert set(Counter(done).values()) == {1}
    assert set(states(session).values()) == {("succeeded", 1)}


def test_as_many_rows_are_handled_at_once_as_was_asked_for(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    ids = added(session, *(Task() for _ in range(4)))
    together = threading.Barrier(4)

    def handler(lease: Lease) -> None:
        together.wait(10)
        stop.set()

    Task.run(sessions, handler, concurrency=4, stop=stop)
    assert states(session) == dict.fromkeys(ids, ("succeeded", 1))


@IN_BATCHES
def test_an_error_of_the_handler_is_stored_and_the_others_go_on(
    session: Session, sessions: Sessions, in_batches: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bad, cancelled, good = added(session, Task(), Task(), Task())
    done = []

    def handler(lease: Lease) -> None:
        done.append(lease.pk)
        if lease.pk == (bad,):
            raise ValueError("no such page")
        if lease.pk == (cancelled,):
            raise Cancel("not wanted any more")
        lease.set(title="seen")

    Task.run(sessions, handler, batch=3, stop=lambda: len(done) == 3, complete_in_batches=in_batches)
    assert states(session) == {bad: ("pending", 1), cancelled: ("cancelled", 1), good: ("succeeded", 1)}
    assert session.get_one(Task, good, populate_existing=True).title == "seen"
    assert f"tasks:{bad} failed" in caplog.text


@IN_BATCHES
def test_at_the_stop_what_runs_is_finished_and_the_rest_is_given_back(
    session: Session, sessions: Sessions, stop: threading.Event, in_batches: bool
) -> None:
    first, *rest = added(session, *(Task() for _ in range(5)))
    begun, go_on = threading.Event(), threading.Event()

    def handler(lease: Lease) -> None:
        begun.set()
        go_on.wait(20)

    running = Running(Task, sessions, handler, batch=5, stop=stop, complete_in_batches=in_batches)
    assert begun.wait(10)
    assert set(states(session).values()) == {("running", 1)}
    stop.set()
    given_back = dict.fromkeys(rest, ("pending", 0))
    eventually(lambda: states(session) == {first: ("running", 1), **given_back})
    go_on.set()
    running.end()
    assert states(session) == {first: ("succeeded", 1), **given_back}


@IN_BATCHES
def test_what_is_no_exception_stops_all_and_comes_out(
    session: Session, sessions: Sessions, in_batches: bool
) -> None:
    first, leaving, *rest = added(session, *(Task() for _ in range(5)))
    both_begun = threading.Barrier(2)
    leavers: list[threading.Thread] = []

    def handler(lease: Lease) -> None:
        if lease.pk == (leaving,):
            leavers.append(threading.current_thread())
            both_begun.wait(10)
            raise SystemExit(3)
        both_begun.wait(10)
        leavers[0].join(10)

    with pytest.raises(SystemExit) as left:
        Task.run(sessions, handler, concurrency=2, batch=5, complete_in_batches=in_batches)
    assert left.value.code == 3
    found = states(session)
    assert found.pop(first) == ("succeeded", 1)
    assert found == dict.fromkeys([leaving, *rest], ("pending", 0))


def test_an_end_that_cannot_be_stored_is_a_failure(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    bad, good = added(session, Task(), Task())

    def handler(lease: Lease) -> None:
        if lease.pk == (bad,):
            lease.set(title=func.no_such_function())
        else:
            stop.set()

    Task.run(sessions, handler, stop=stop)
    assert states(session) == {bad: ("pending", 1), good: ("succeeded", 1)}


def test_a_row_whose_failure_cannot_be_stored_either_runs_out_and_is_done_again(
    session: Session, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    [one] = added(session, Short())
    leases: list[Lease] = []  # kept, and with them what would keep the row alive

    def fail(*_: Any) -> None:
        raise BackendError("connection refused")

    def handler(lease: Lease) -> None:
        leases.append(lease)
        if len(leases) == 1:
            raise ValueError("no such page")

    monkeypatch.setattr(Lease, "_fail", fail)
    Short.run(sessions, handler, stop=lambda: len(leases) == 2)
    assert "could not be stored: connection refused" in caplog.text
    assert states(session, Short) == {one: ("succeeded", 2)}


def test_rows_go_through_their_steps(session: Session, sessions: Sessions) -> None:
    [one] = added(session, Stage())
    steps: list[Any] = []
    Stage.run(
        sessions,
        lambda lease: steps.append(lease.step),
        stop=lambda: len(steps) == 2,
        complete_in_batches=True,
        idle=0.1,
    )
    assert steps == ["download", "transcribe"]
    assert states(session, Stage) == {one: ("succeeded", 1)}


def test_an_idle_pool_wakes_when_the_next_row_comes_due(
    session: Session, sessions: Sessions, stop: threading.Event
) -> None:
    session.add(row := Task())
    due = time.monotonic() + 1  # or later, by what it takes to ask for it
    row.enqueue(session, at="1s")
    session.commit()
    committed = time.monotonic()
    begun: list[float] = []

    def handler(lease: Lease) -> None:
        begun.append(time.monotonic())
        stop.set()

    Task.run(sessions, handler, concurrency=2, stop=stop, idle="1 hour")
    assert begun[0] > due - 0.001  # two clocks
    assert begun[0] < committed + 1 + 5


def test_an_idle_pool_stops_soon(engine: Any, sessions: Sessions, stop: threading.Event) -> None:
    threading.Timer(0.3, stop.set).start()
    begun = time.monotonic()
    Task.run(sessions, lambda _: None, concurrency=3, stop=stop, idle="1 hour")
    assert time.monotonic() - begun < 2


def test_bad_arguments_are_refused(session: Session, sessions: Sessions) -> None:
    bad: Any
    for bad in ({"concurrency": 0}, {"concurrency": "2"}, {"batch": 0}, {"stop": "now"}):
        with pytest.raises(ConfigurationError):
            Task.run(sessions, lambda _: None, **bad)
    bad = session
    with pytest.raises(NotSupported, match="makes sessions"):
        Task.run(bad, lambda _: None)


def test_a_database_in_memory_has_no_second_connection_for_a_pool(make_engine: Callable[..., Engine]) -> None:
    engine = make_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    Base.metadata.create_all(engine)
    sessions = sessionmaker(engine)
    with pytest.raises(NotSupported, match="in memory"):
        Task.run(sessions, lambda _: None)
    with sessions() as session:
        [one] = added(session, Task())
    done: list[Any] = []
    for lease in Task.work(sessions, stop=lambda: bool(done)):
        with lease:
            done.append(lease.pk)
    assert done == [(one,)]
