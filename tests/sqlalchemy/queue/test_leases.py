"""What a lease does in and out of its block."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from sqlalchemy import Engine, func, select, text, update
from sqlalchemy.orm import Session

from reservable import (
    BackendError,
    Cancel,
    InvalidDuration,
    Lease,
    LeaseLost,
    NotSupported,
    Retry,
    Snooze,
)
from reservable.backends.database.repeating import steadily_told
from reservable.leasing import asking, desk
from reservable.retrying import LostReply
from tests.sqlalchemy.queue.models import Kept, Short, Stamped, StrictTask, Task
from tests.waiting import eventually

HOUR = timedelta(hours=1)


@pytest.fixture
def lease(session: Session) -> Lease:
    session.add(Task(title="new"))
    session.commit()
    [lease] = Task.claim(session)
    return lease


def fresh(session: Session, lease: Lease) -> Any:
    row = session.get_one(type(lease.row), lease.pk[0], populate_existing=True)
    session.commit()
    return row


def run_out(session: Session, lease: Lease) -> None:
    model = type(lease.row)
    session.execute(update(model).where(model.id == lease.pk[0]).values(retry_at=datetime.now(UTC) - HOUR))
    session.commit()


class TestValues:
    def test_finishes_of_the_same_shape_write_what_is_theirs(self, session: Session) -> None:
        session.add_all([Stamped(id=number) for number in (1, 2, 3, 4)])
        session.commit()
        first, second, *rest = Stamped.claim(session, 4)
        first.complete(found=[1])
        second.complete(found=[2, 2])
        for lease in rest:
            lease.complete()
        rows = [fresh(session, lease) for lease in (first, second, *rest)]
        assert [row.found for row in rows] == [[1], [2, 2], None, None]
        assert len({row.changed for row in rows} - {0}) == 4  # each UPDATE brought its own value

    def test_what_was_set_is_written_with_the_completion(self, session: Session, lease: Lease) -> None:
        with lease:
            lease.set(title="set")
            assert fresh(session, lease).title == "new"
        assert fresh(session, lease).title == "set"
        assert lease.row.title == "set"

    def test_what_is_updated_is_written_at_once_and_the_lease_goes_on(
        self, session: Session, lease: Lease
    ) -> None:
        lease.update(title=func.concat("a", "b") if session.get_bind().dialect.name != "sqlite" else "ab")
        row = fresh(session, lease)
        assert (row.title, row.status, row.lease_token) == ("ab", "running", lease.token)
        lease.complete(title="last")
        assert fresh(session, lease).title == "last"

    def test_what_was_set_is_not_written_when_the_body_fails(self, session: Session, lease: Lease) -> None:
        with pytest.raises(ValueError, match="no"), lease:
            lease.set(title="set")
            raise ValueError("no")
        assert fresh(session, lease).title == "new"

    @pytest.mark.parametrize(
        "name",
        ["status", "retry_at", "lease_token", "priority", "errors", "finished_at", "id", "nonsense", "claim"],
    )
    def test_the_queues_own_columns_and_unknown_names_are_refused(
        self, session: Session, lease: Lease, name: str
    ) -> None:
        for verb in (lease.set, lease.update, lease.complete):
            with pytest.raises(NotSupported, match=name):
                verb(**{name: 1})
        assert fresh(session, lease).status == "running"


class TestBlocks:
    def test_an_exception_is_stored_and_comes_out(self, session: Session, lease: Lease) -> None:
        with pytest.raises(ZeroDivisionError), lease:
            1 / 0  # noqa: B018
        row = fresh(session, lease)
        assert (row.status, row.attempts) == ("pending", 1)
        assert timedelta(minutes=59) < row.retry_at - datetime.now(UTC) <= timedelta(hours=1, seconds=5)
        assert (row.last_error["type"], row.last_error["attempt"]) == ("ZeroDivisionError", 1)
        assert "1 / 0" in row.last_error["traceback"]
        assert datetime.fromisoformat(row.last_error["at"]).utcoffset() == timedelta()

    def test_the_last_attempt_fails_for_good(self, session: Session, lease: Lease) -> None:
        lease.fail("once", retry_in=0)
        with Task.start(session, lease.pk[0], skip_error=True):
            raise ValueError("twice")
        row = fresh(session, lease)
        assert (row.status, row.retry_at, len(row.errors)) == ("failed", None, 2)
        assert row.finished_at is not None

    def test_errors_that_are_skipped_are_logged(
        self, session: Session, lease: Lease, caplog: pytest.LogCaptureFixture
    ) -> None:
        lease.release()
        with caplog.at_level(logging.ERROR, "reservable"), Task.start(session, lease.pk[0], skip_error=True):
            raise ValueError("boo")
        assert "boo" in caplog.text

    def test_snooze(self, session: Session, lease: Lease) -> None:
        with lease:
            raise Snooze("1 hour")
        row = fresh(session, lease)
        assert (row.status, row.attempts, row.errors) == ("pending", 0, [])
        assert row.retry_at > datetime.now(UTC)

    def test_retry_stores_what_it_was_raised_from(self, session: Session, lease: Lease) -> None:
        with lease:
            try:
                raise OSError("away")
            except OSError as error:
                raise Retry(after=0) from error
        row = fresh(session, lease)
        assert (row.status, row.attempts, row.last_error["message"]) == ("pending", 1, "away")
        assert row.retry_at <= datetime.now(UTC)

    def test_cancel(self, session: Session, lease: Lease) -> None:
        with lease:
            raise Cancel("not worth it")
        row = fresh(session, lease)
        assert (row.status, row.last_error["message"]) == ("cancelled", "not worth it")

    @pytest.mark.parametrize(
        "end", [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()]
    )
    def test_what_is_no_exception_gives_the_row_back(
        self, session: Session, lease: Lease, end: BaseException
    ) -> None:
        with pytest.raises(type(end)), lease:
            raise end
        row = fresh(session, lease)
        assert (row.status, row.attempts, row.leased_by) == ("pending", 0, None)

    def test_after_an_explicit_finish_the_end_does_nothing(self, session: Session, lease: Lease) -> None:
        with lease:
            lease.snooze("1 hour")
        assert fresh(session, lease).status == "pending"

    def test_a_lost_lease_under_a_body_that_succeeded_is_told(self, session: Session, lease: Lease) -> None:
        with pytest.raises(LeaseLost), lease:
            fresh(session, lease).pause(session)
            session.commit()
        assert fresh(session, lease).status == "paused"
        assert lease.lost.is_set()
        assert lease.expires_at is None

    def test_the_bodys_own_exception_comes_out_of_a_lost_lease(self, session: Session, lease: Lease) -> None:
        with pytest.raises(ValueError, match="mine"), lease:
            fresh(session, lease).cancel(session)
            session.commit()
            raise ValueError("mine")
        assert fresh(session, lease).errors == []

    @pytest.mark.parametrize(
        "error",
        [
            ValueError("x" * 200_000),
            ValueError("a\x00b"),
            ValueError("\ud800"),
            ValueError("\U0001f600" * 60_000),
        ],
    )
    def test_whatever_was_raised_can_be_stored(
        self, session: Session, lease: Lease, error: Exception
    ) -> None:
        with pytest.raises(ValueError), lease:  # noqa: PT011
            raise error
        row = fresh(session, lease)
        assert row.last_error["type"] == "ValueError"
        assert 1 <= len(row.last_error["message"]) < 100_000

    def test_an_error_that_has_no_text_can_be_stored(self, session: Session, lease: Lease) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no text")

        with pytest.raises(Mute), lease:
            raise Mute
        assert "RuntimeError" in fresh(session, lease).last_error["message"]

    def test_errors_that_others_have_stored_keep_no_worker_from_its_row(self, session: Session) -> None:
        session.add(Task(title="new"))
        session.flush()
        session.execute(text("UPDATE tasks SET errors = 'no list'"))
        session.commit()
        [lease] = Task.claim(session)
        with pytest.raises(ZeroDivisionError), lease:
            _ = 1 / 0
        first, last = fresh(session, lease).errors
        assert first == {"type": "", "message": "no list", "traceback": "", "attempt": 0, "at": ""}
        assert last["message"] == "division by zero"


class TestHeartbeats:
    def test_it_sets_and_never_adds(self, session: Session, lease: Lease) -> None:
        lease.heartbeat("10 minutes")
        assert lease.expires_at == fresh(session, lease).retry_at
        assert lease.expires_at is not None
        assert lease.expires_at - datetime.now(UTC) <= timedelta(minutes=10, seconds=5)

    def test_a_block_keeps_its_row_alive(self, session: Session, other: Session) -> None:
        session.add(Kept())
        session.commit()
        [lease] = Kept.claim(session)
        with lease:
            ends = {lease.expires_at}
            while len(ends) < 4:
                eventually(lambda: lease.expires_at not in ends)
                ends.add(lease.expires_at)
                assert Kept.claim(other) == []
        assert fresh(session, lease).status == "succeeded"

    def test_renew_keeps_it_alive_from_the_claim(self, session: Session) -> None:
        session.add(Kept())
        session.commit()
        [lease] = Kept.claim(session, renew=True)
        ends = lease.expires_at
        eventually(lambda: lease.expires_at != ends)
        lease.complete()
        assert not lease.lost.is_set()

    def test_a_row_that_was_paused_is_lost_to_its_worker(self, session: Session) -> None:
        session.add(Short())
        session.commit()
        pk = session.scalars(select(Short.id)).one()
        session.rollback()
        with pytest.raises(LeaseLost), Short.start(session, pk) as lease:
            fresh(session, lease).pause(session)
            session.commit()
            assert lease.lost.wait(5)

    @pytest.mark.parametrize("bad", [0, -1, "nonsense", True])
    def test_durations_that_are_none(self, lease: Lease, bad: Any) -> None:
        with pytest.raises(InvalidDuration):
            lease.heartbeat(bad)


class TestLateFinishes:
    def test_of_a_row_that_nobody_took_succeeds(self, session: Session, lease: Lease) -> None:
        run_out(session, lease)
        lease.complete()
        assert fresh(session, lease).status == "succeeded"

    def test_is_refused_by_a_strict_queue(self, session: Session) -> None:
        session.add(StrictTask())
        session.commit()
        [lease] = StrictTask.claim(session)
        run_out(session, lease)
        for verb in (lease.complete, lease.release, lease.heartbeat, lambda: lease.fail("no")):
            with pytest.raises(LeaseLost):
                verb()
        assert Lease.complete_all([lease]) == []
        assert fresh(session, lease).status == "running"

    def test_nothing_that_is_read_again_revives_a_stale_lease(self, session: Session, lease: Lease) -> None:
        run_out(session, lease)
        [newer] = Task.claim(session)
        lease.row.lease_token = newer.token
        with pytest.raises(LeaseLost):
            lease.complete()
        newer.complete()


class TestTransactions:
    def test_data_and_completion_are_one_commit(self, session: Session, other: Session, lease: Lease) -> None:
        with lease.transaction(session) as row:
            row.title = "whole"
            session.add(Task(title="next"))
            assert other.scalar(select(func.count(Task.id))) == 1
            other.rollback()
        rows = other.execute(select(Task.title, Task.status).order_by(Task.id)).all()
        assert [tuple(row) for row in rows] == [("whole", "succeeded"), ("next", "pending")]

    def test_a_body_that_raises_rolls_both_back(self, session: Session, lease: Lease) -> None:
        with pytest.raises(ValueError, match="no"), lease, lease.transaction(session) as row:
            row.title = "half"
            raise ValueError("no")
        row = fresh(session, lease)
        assert (row.title, row.status, len(row.errors)) == ("new", "pending", 1)

    def test_a_stale_lease_writes_nothing(self, session: Session, lease: Lease) -> None:
        run_out(session, lease)
        [newer] = Task.claim(session)
        with pytest.raises(LeaseLost), lease.transaction(session):
            pytest.fail("the body of a stale lease must not run")
        assert fresh(session, lease).title == "new"
        newer.complete()

    def test_a_session_that_read_before_sees_the_row_as_it_is(self, session: Session, lease: Lease) -> None:
        assert session.scalar(select(Task.title)) == "new"  # a snapshot, where the server keeps one
        if session.get_bind().dialect.name == "sqlite":
            session.rollback()  # a reader cannot become a writer when somebody has written meanwhile
        lease.update(title="newer")
        with lease.transaction(session) as row:
            assert row.title == "newer"


def test_many_are_completed_in_one_statement(session: Session) -> None:
    session.add_all([Task() for _ in range(6)])
    session.commit()
    leases = Task.claim(session, 6)
    leases[1].release()
    run_out(session, leases[2])
    [taken] = Task.claim(session, where=Task.id == leases[2].pk[0])
    leases[3].set(title="set")
    done = Lease.complete_all(leases)
    assert done == [leases[0], *leases[3:]]
    assert leases[2].lost.is_set()
    assert Task.status_counts(session) == {
        "pending": 1,
        "running": 1,
        "succeeded": 4,
        "failed": 0,
        "paused": 0,
        "cancelled": 0,
    }
    assert taken.token == leases[2].token + 1
    assert Lease.complete_all(leases) == []


def test_of_two_threads_one_finishes_the_lease(session: Session, lease: Lease) -> None:
    outcomes: list[str] = []
    barrier = threading.Barrier(2)

    def finish() -> None:
        barrier.wait()
        try:
            lease.complete()
            outcomes.append("done")
        except LeaseLost:
            outcomes.append("lost")

    threads = [threading.Thread(target=finish) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["done", "lost"]


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """The reply to the next request is lost; what is in the list happens before it is asked again."""
    meanwhile: list[Callable[[], object]] = []
    lost = iter([True])

    def told(work: Callable[[], Any], dialect: Any, **options: Any) -> Any:
        def once() -> Any:
            answer = work()
            if next(lost, False):
                for happens in meanwhile:
                    happens()
                raise LostReply(BackendError("cut"))
            return answer

        return steadily_told(once, dialect, **options)

    for module in (asking, desk):
        monkeypatch.setattr(module, "steadily_told", told)
    return meanwhile


@pytest.mark.parametrize(
    ("verb", "status"), [("complete", "succeeded"), ("release", "pending"), ("heartbeat", "running")]
)
def test_a_reply_that_is_lost_is_not_a_lost_lease(
    session: Session, lease: Lease, losing: object, verb: str, status: str
) -> None:
    getattr(lease, verb)()
    assert fresh(session, lease).status == status


def test_what_is_computed_is_computed_once_though_the_reply_was_lost(
    session: Session, lease: Lease, losing: object
) -> None:
    with pytest.raises(BackendError, match="cut"):
        lease.update(title=Task.title + "!")
    assert fresh(session, lease).title == "new!"
    lease.update(title=Task.title + "?")
    assert fresh(session, lease).title == "new!?"


def test_a_start_whose_reply_was_lost_is_no_refusal(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.add(Short())
    session.commit()
    pk = session.scalars(select(Short.id)).one()
    session.rollback()
    requests = count()

    def told(work: Callable[[], Any], dialect: Any, **options: Any) -> Any:
        def once() -> Any:
            answer = work()
            if next(requests) == 1:  # the first one has looked, the second one claims
                raise LostReply(BackendError("cut"))
            return answer

        return steadily_told(once, dialect, **options)

    with monkeypatch.context() as patched:
        patched.setattr(asking, "steadily_told", told)
        with pytest.raises(BackendError, match="cannot be known"), Short.start(session, pk):
            pass
    [lease] = eventually(lambda: Short.claim(session))
    assert lease.attempt == 2


def test_what_a_lost_reply_has_said_of_a_row_that_moved_on_cannot_be_known(
    session: Session, lease: Lease, losing: list[Callable[[], object]]
) -> None:
    losing.append(lambda: Task.claim(session))
    with pytest.raises(BackendError, match="cannot be known"):
        lease.release()
    assert lease.lost.is_set()
    assert fresh(session, lease).lease_token == lease.token + 1


def test_a_database_that_is_gone_is_an_error_of_its_own(
    session: Session, lease: Lease, engine: Engine
) -> None:
    Task.__table__.drop(engine)  # type: ignore[attr-defined]
    with pytest.raises(BackendError):
        lease.complete()
    assert not lease.lost.is_set()
