"""Real processes: each row once, whoever dies."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from sqlalchemy import func, insert, select, text
from sqlalchemy.orm import Session

from tests.processes import Worker, WorkerDied, race
from tests.sqlalchemy.queue.models import Endless, Kept, Owner, Short, Task
from tests.sqlalchemy.queue.workers import (
    be_stopped,
    die_at_work,
    drain,
    produce_or_consume,
    work_long,
    write_down,
)
from tests.waiting import eventually

ROWS = 500


@pytest.mark.parametrize(("processes", "batch"), [(16, 20), (4, 1)])
def test_every_row_is_done_exactly_once(session: Session, url: str, processes: int, batch: int) -> None:
    session.execute(insert(Task), [{"title": str(number)} for number in range(ROWS)])
    session.commit()
    done = race(drain, url, batch, processes=processes, within=120)
    counts = Counter(pk for one in done for pk in one)
    assert len(counts) == ROWS
    assert set(counts.values()) == {1}
    assert Task.status_counts(session)["succeeded"] == ROWS
    session.commit()
    assert {tuple(row) for row in session.execute(select(Task.attempts, Task.lease_token))} == {(1, 1)}


def test_nobody_dies_while_rows_are_added_done_and_deleted_at_once(session: Session, url: str) -> None:
    done = race(produce_or_consume, url, 300, processes=6, within=120)
    counts = Counter(title for one in done for title in one)
    assert len(counts) == 300
    assert set(counts.values()) == {1}
    Task.prune(session, 0)
    assert set(Task.status_counts(session).values()) == {0}


def test_a_row_that_kills_its_workers_fails_when_its_attempts_are_used_up(session: Session, url: str) -> None:
    session.add(Short())
    session.commit()
    for attempt in (1, 2, 3):
        with Worker(die_at_work, url) as worker:
            assert worker.hear() == attempt
            with pytest.raises(WorkerDied):
                worker.result()
        eventually(lambda: _count(session, "expired") == 1)
    assert Short.claim(session) == []
    row = session.scalars(select(Short).execution_options(populate_existing=True)).one()
    assert (row.status, row.attempts, len(row.errors)) == ("failed", 3, 1)
    assert row.last_error is not None
    assert row.last_error["message"] == "lease expired"


def test_a_worker_that_lives_keeps_its_row_beyond_the_lease(session: Session, url: str) -> None:
    session.add(Kept())
    session.commit()
    with Worker(work_long, url, 2.5) as worker:
        assert worker.hear() == "at work"
        for _ in _while(worker):
            assert Kept.claim(session) == []
        assert worker.result() == "succeeded"


def test_each_row_takes_effect_once_while_workers_are_killed_at_random(session: Session, url: str) -> None:
    chance = random.Random(7)
    if session.get_bind().dialect.name == "sqlite":  # whose writers get their turn by luck
        session.execute(text("PRAGMA busy_timeout = 60000"))
        session.commit()
    with ExitStack() as stack:

        def started() -> Worker:
            return stack.enter_context(Worker(write_down, url))

        workers = [started() for _ in range(3)]
        for _ in range(6):
            number = chance.randrange(len(workers))
            workers[number].ready()
            session.execute(insert(Endless), [{"priority": number % 2} for number in range(150)])
            session.commit()
            workers[number].hear()
            time.sleep(chance.uniform(0, 0.03))
            workers[number].kill()
            workers[number] = started()
        eventually(lambda: not _left(session), within=60)
    assert _left(session) == 0
    assert session.scalars(select(func.max(Endless.attempts))).one() > 1  # somebody was killed in the middle
    names = session.scalars(select(Owner.name)).all()
    assert sorted(names, key=str) == sorted(map(str, session.scalars(select(Endless.id))))


def _left(session: Session) -> int:
    counts = Endless.status_counts(session)
    session.commit()
    return sum(counts.values()) - counts["succeeded"]


def test_a_worker_that_was_stopped_changes_nothing_of_its_successors(session: Session, url: str) -> None:
    session.add(Short())
    session.commit()
    with Worker(be_stopped, url) as worker:
        assert worker.hear() == "at work"
        worker.sigstop()
        eventually(lambda: _count(session, "expired") == 1)
        [lease] = Short.claim(session, worker="same", renew=True)
        worker.sigcont()
        assert worker.result() == "lost"
        lease.complete(title="mine")
    row = session.scalars(select(Short).execution_options(populate_existing=True)).one()
    assert (row.status, row.title, row.attempts, row.errors) == ("succeeded", "mine", 2, [])


def _while(worker: Worker) -> Iterator[None]:
    while worker.alive:
        yield


def _count(session: Session, which: str) -> int:
    found = len(session.scalars(select(Short.id).where(getattr(Short, which)())).all())
    session.commit()
    return found
