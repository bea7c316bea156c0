"""Times are the database's: not the worker's, whose clock is wrong, or who stood still, or who is in another zone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from reservable import Lease, NotClaimable
from reservable.backends.database.clock import clock
from reservable.grants import utc
from tests.clocks import wrong_clock
from tests.sqlalchemy.finding.worlds import before_statement
from tests.sqlalchemy.queue.models import Kept, Task
from tests.sqlalchemy.queue.rows import added
from tests.waiting import eventually

HOUR = timedelta(hours=1)
BERLIN = ZoneInfo("Europe/Berlin")
WRONG = pytest.mark.parametrize("by", [2 * HOUR, -2 * HOUR], ids=["ahead", "behind"])


def now(session: Session) -> datetime:
    """The time by the database's clock."""
    found = utc(session.scalars(select(clock())).one())
    session.rollback()
    return found


@contextmanager
def between(session: Session, row: int, name: str, after: timedelta) -> Iterator[None]:
    """What is written to this column meanwhile is so much later than the time by the database's clock."""
    begun = now(session)
    yield
    ended = now(session)
    written = session.scalars(select(getattr(Task, name)).where(Task.id == row)).one()
    session.rollback()
    assert begun + after <= written <= ended + after


@WRONG
def test_a_wrong_clock_takes_no_row_from_its_worker(session: Session, other: Session, by: timedelta) -> None:
    [pk] = added(session, Task())
    [lease] = Task.claim(session)
    with wrong_clock(by):
        assert Task.claim(other) == []
        with pytest.raises(NotClaimable, match="running"), Task.start(other, pk):
            pass
        assert Task.reap(other) == 0
        assert other.scalars(select(Task.id).where(Task.expired())).all() == []
        other.rollback()
    lease.complete()


@WRONG
def test_a_wrong_clock_claims_what_is_due_and_nothing_else(session: Session, by: timedelta) -> None:
    with wrong_clock(by):
        now_due, later = Task(), Task()
        assert now_due.enqueue(session)
        assert later.enqueue(session, "1 hour")
        session.commit()
        [lease] = Task.claim(session, 3)
        assert lease.pk == (now_due.id,)
        lease.release()
    [lease] = Task.claim(session, 3)
    assert lease.pk == (now_due.id,)


@WRONG
def test_a_wrong_clock_puts_off_until_the_time_that_was_said(session: Session, by: timedelta) -> None:
    moment = datetime.now(UTC) + HOUR
    new, paused, ended = Task(), Task(status="paused"), Task(status="failed")
    added(session, paused, ended)
    with wrong_clock(by):
        assert new.enqueue(session, moment)
        assert paused.resume(session, moment)
        assert ended.enqueue(session, moment)
        session.commit()
        session.expire_all()
    assert [row.retry_at for row in (new, paused, ended)] == [moment] * 3


def test_what_was_to_be_done_in_the_past_is_due_now(session: Session) -> None:
    new, paused = Task(), Task(status="paused")
    added(session, paused)
    begun = now(session)
    assert new.enqueue(session, begun - HOUR)
    assert paused.resume(session, begun - HOUR)
    session.commit()
    session.expire_all()
    ended = now(session)
    assert all(row.retry_at and begun <= row.retry_at <= ended for row in (new, paused))


@WRONG
def test_a_wrong_clock_writes_right_times(session: Session, by: timedelta) -> None:
    [pk] = added(session, Task())

    def claimed() -> Lease:
        [lease] = Task.claim(session)
        return lease

    with wrong_clock(by):
        with between(session, pk, "retry_at", HOUR):
            lease = claimed()
        with between(session, pk, "retry_at", HOUR / 2):
            lease.heartbeat("30 minutes")
        with between(session, pk, "retry_at", timedelta()):
            lease.release()
        lease = claimed()
        with between(session, pk, "retry_at", HOUR):
            lease.fail("no")
        with between(session, pk, "retry_at", timedelta()):
            assert session.get_one(Task, pk).pause(session)
            assert session.get_one(Task, pk).resume(session)
            session.commit()
        lease = claimed()
        with between(session, pk, "finished_at", timedelta()):
            lease.complete()
        assert Task.prune(session, "10 minutes") == 0


def test_a_worker_that_stands_still_on_its_way_has_its_whole_lease(session: Session, other: Session) -> None:
    added(session, Kept())
    asked: list[datetime] = []

    def stand_still() -> None:
        longer = now(other) + timedelta(seconds=2.2)
        eventually(lambda: now(other) > longer)
        asked.append(now(other))

    with before_statement("^(WITH|UPDATE)", stand_still):
        [lease] = Kept.claim(session)
    assert lease.row.retry_at - asked[0] >= timedelta(seconds=2)
    assert Kept.claim(other) == []
    lease.complete()


@pytest.mark.parametrize("seconds", [0.3, 0.7, 1.000_001])
def test_fractions_of_a_second_are_kept(session: Session, seconds: float) -> None:
    [pk] = added(session, Task())
    [lease] = Task.claim(session)
    with between(session, pk, "retry_at", timedelta(seconds=seconds)):
        lease.heartbeat(seconds)
    with between(session, pk, "retry_at", timedelta(seconds=seconds)):
        lease.fail("no", retry_in=seconds)


def test_times_are_aware_and_can_be_compared_with_what_is_loaded(session: Session) -> None:
    moment = datetime(2199, 7, 1, 12, 0, 0, 1, tzinfo=UTC)
    due, later = Task(title="due", retry_at=moment - 9 * HOUR), Task(title="later", retry_at=moment)
    added(session, due, later)
    evaluated: dict[str, Any] = {"execution_options": {"synchronize_session": "evaluate"}}
    session.execute(update(Task).where(Task.retry_at >= moment).values(title="found"), **evaluated)
    assert [due.title, later.title] == ["due", "found"]
    moved = update(Task).where(Task.retry_at < moment.astimezone(BERLIN)).values(retry_at=moment - HOUR)
    session.execute(moved, **evaluated)
    assert due.retry_at == moment - HOUR
    session.commit()
    session.expire_all()
    assert [due.retry_at, later.retry_at] == [moment - HOUR, moment]
    assert [row.retry_at.utcoffset() for row in (due, later) if row.retry_at] == [timedelta()] * 2
    session.commit()
    [lease] = Task.claim(session, where=Task.id == added(session, Task())[0])
    session.commit()
    assert lease.expires_at == lease.row.retry_at > datetime.now(UTC)
    lease.complete()
    session.expire_all()
    done = session.get_one(Task, lease.pk[0])
    assert done.finished_at is not None
    assert done.finished_at < moment


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2024, 3, 31, 2, 30, tzinfo=BERLIN),
        datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN),
        datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN),
    ],
    ids=["in the hour that is left out", "in an hour that comes twice", "when it comes again"],
)
def test_a_time_of_a_zone_is_one_moment(session: Session, moment: datetime) -> None:
    row, queued = Task(retry_at=moment), Task(retry_at=None, status="paused")
    added(session, row, queued)
    future = moment.replace(year=2099)
    assert queued.resume(session, future)
    session.commit()
    session.expire_all()
    assert row.retry_at == moment.astimezone(UTC)
    assert queued.retry_at == future.astimezone(UTC)
    session.commit()
    [lease] = Task.claim(session, 2)
    assert lease.pk == (row.id,)
