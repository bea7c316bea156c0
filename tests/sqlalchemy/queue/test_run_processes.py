"""`run` in real processes: killed, stopped, interrupted, and with a server that is restarted."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, func, insert, select
from sqlalchemy.orm import Session

from tests.processes import Worker, WorkerDied
from tests.servers import ServerMissing, start_postgresql
from tests.sqlalchemy.queue.models import Base, Kept, Short, Task
from tests.sqlalchemy.queue.pools import begun, run_until_interrupted, run_until_told
from tests.sqlalchemy.queue.rows import added, states
from tests.stores import servers_are_required
from tests.waiting import eventually

IN_BATCHES = pytest.mark.parametrize("in_batches", [False, True], ids=["one by one", "in batches"])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """What the handlers of all processes have begun."""
    return tmp_path / "begun"


@contextmanager
def pools(
    processes: int, url: str, model: str, log: Path, seconds: float, **options: Any
) -> Iterator[list[Worker]]:
    """Processes that run; those that are left end with the block."""
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Worker(run_until_told, number, url, model, str(log), seconds, options))
            for number in range(processes)
        ]
        for worker in workers:
            assert worker.hear(30) == "ready"
        yield workers


def told_to_stop(workers: list[Worker]) -> list[int]:
    """Stop them all; the keys of the rows that they have done."""
    for worker in workers:
        worker.send(signal.SIGTERM)
    return [pk for worker in workers for pk in worker.result()]


def all_succeeded(session: Session, model: type[Any]) -> bool:
    session.rollback()
    return not session.scalar(select(func.count()).select_from(model).where(model.status != "succeeded"))


@IN_BATCHES
def test_eight_processes_do_each_of_a_thousand_rows_once(
    session: Session, url: str, log: Path, in_batches: bool
) -> None:
    session.execute(insert(Task), [{"title": str(number)} for number in range(1000)])
    session.commit()
    options = {"batch": 20, "concurrency": 2, "complete_in_batches": in_batches}
    with pools(8, url, "Task", log, 0.0, **options) as workers:
        eventually(lambda: all_succeeded(session, Task), within=60, every=0.1)
        done = Counter(told_to_stop(workers))
    assert len(done) == 1000
    assert set(done.values()) == {1}
    assert set(states(session).values()) == {("succeeded", 1)}


@IN_BATCHES
def test_killed_processes_lose_nothing_and_nothing_is_done_twice_under_one_lease(
    session: Session, url: str, log: Path, in_batches: bool
) -> None:
    ids = added(session, *(Kept() for _ in range(60)))
    options = {"batch": 4, "concurrency": 2, "complete_in_batches": in_batches}
    with pools(4, url, "Kept", log, 0.05, **options) as workers:
        for killed, so_many in zip(workers[:2], (8, 24), strict=True):
            eventually(lambda so_many=so_many: len(begun(log)) >= so_many, within=20)  # type: ignore[misc]
            killed.kill()
            with pytest.raises(WorkerDied):
                killed.result()
        eventually(lambda: all_succeeded(session, Kept), within=30, every=0.05)
        told_to_stop(workers[2:])
    leases = [(pk, token) for pk, token, _ in begun(log)]
    assert len(leases) == len({*leases})
    assert {pk for pk, _ in leases} == {*ids}
    # Who lives has lost no row to another: those begun anew had been a killed one's.
    dead = {worker.pid for worker in workers[:2]}
    last = {pk: token for pk, token, _ in begun(log)}
    assert {pid for pk, token, pid in begun(log) if token < last[pk]} <= dead


def test_a_process_that_stood_still_changes_nothing_of_what_was_taken_over(
    session: Session, url: str, log: Path
) -> None:
    [one] = added(session, Short())
    with pools(1, url, "Short", log, 2.0) as [still]:
        eventually(lambda: begun(log))
        still.send(signal.SIGSTOP)
        with pools(1, url, "Short", log, 0.0) as [other]:
            eventually(lambda: all_succeeded(session, Short))
            told_to_stop([other])
        [after] = session.execute(select(Short.lease_token, Short.attempts, Short.finished_at)).all()
        assert after[:2] == (2, 2)
        session.rollback()
        still.send(signal.SIGCONT)
        told_to_stop([still])
    assert [*session.execute(select(Short.lease_token, Short.attempts, Short.finished_at)).all()] == [after]
    assert [(pk, token) for pk, token, _ in begun(log)] == [(one, 1), (one, 2)]


def test_a_signal_ends_a_process_when_what_runs_is_finished(session: Session, url: str, log: Path) -> None:
    first, *rest = added(session, *(Task() for _ in range(5)))
    with pools(1, url, "Task", log, 1.0, batch=5) as [worker]:
        eventually(lambda: begun(log), within=10)
        assert told_to_stop([worker]) == [first]
    assert states(session) == {first: ("succeeded", 1), **dict.fromkeys(rest, ("pending", 0))}


def test_an_interrupt_comes_out_when_what_runs_is_finished(session: Session, url: str) -> None:
    added(session, *(Task() for _ in range(5)))
    with Worker(run_until_interrupted, url) as worker:
        assert [worker.hear(), worker.hear()] == ["at work", "at work"]
        worker.send(signal.SIGINT)
        assert worker.result() == "interrupted"
    assert Counter(states(session).values()) == {("succeeded", 1): 2, ("pending", 0): 3}


@IN_BATCHES
def test_a_server_that_is_restarted_is_waited_for(log: Path, in_batches: bool) -> None:
    try:
        server = start_postgresql()
    except ServerMissing as missing:
        if servers_are_required():
            raise
        pytest.skip(str(missing))
    with server:
        engine = create_engine(server.url, pool_pre_ping=True)
        Base.metadata.create_all(engine)
        with Session(engine) as session:
            ids = added(session, *(Short() for _ in range(80)))
            options = {"batch": 4, "concurrency": 2, "complete_in_batches": in_batches}
            with pools(2, server.url, "Short", log, 0.05, **options) as workers:
                eventually(lambda: len({pid for *_, pid in begun(log)}) == 2, within=20)
                session.close()
                server.restart()
                eventually(lambda: all_succeeded(session, Short), within=30, every=0.1)
                told_to_stop(workers)
            leases = [(pk, token) for pk, token, _ in begun(log)]
            assert len(leases) == len({*leases})
            assert {pk for pk, _ in leases} == {*ids}
        engine.dispose()
