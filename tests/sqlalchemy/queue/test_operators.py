"""What operators do, in the caller's own transaction; upkeep, steps, the guard, and options that cannot work."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import BigInteger, select, update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from reservable import (
    ConfigurationError,
    InvalidDuration,
    QueueColumnWarning,
    Queued,
    QueueOptions,
    UnidentifiedInstance,
)
from tests.sqlalchemy.queue.models import Book, Document, Letter, Pair, Renumbered, Stage, Task, Twist

HOUR = timedelta(hours=1)


def added(session: Session, row: Any) -> Any:
    session.add(row)
    session.commit()
    return row


class TestTransactions:
    def test_a_new_row_is_queued_with_what_it_is_committed_with(
        self, session: Session, other: Session
    ) -> None:
        row = Task()
        assert row.enqueue(session)
        session.flush()
        if session.get_bind().dialect.name != "sqlite":
            assert Task.claim(other) == []
        session.commit()
        assert [lease.pk for lease in Task.claim(other)] == [(row.id,)]

    def test_a_new_row_that_was_not_to_be_scheduled_is_after_all(self, session: Session) -> None:
        row = Task(retry_at=None, status="paused")
        assert row.enqueue(session)
        session.commit()
        assert [lease.pk for lease in Task.claim(session)] == [(row.id,)]

    def test_what_is_rolled_back_has_not_happened(self, session: Session) -> None:
        row = added(session, Task())
        assert row.pause(session)
        session.rollback()
        [lease] = Task.claim(session)
        lease.complete()

    def test_what_a_savepoint_took_back_is_not_shown(self, session: Session) -> None:
        row = added(session, Task())
        row.title = "mine"
        with session.begin_nested() as savepoint:
            assert row.pause(session)
            assert row.status == "paused"
            savepoint.rollback()
        assert (row.status, row.title) == ("pending", "mine")
        assert row.pause(session)
        session.commit()
        assert row.status == "paused"

    def test_the_row_shows_what_it_is_now(self, session: Session) -> None:
        row = added(session, Task())
        Task.claim(session)
        assert row.pause(session)
        assert (row.status, row.retry_at, row.attempts, row.lease_token) == ("paused", None, 0, 2)
        assert not row.pause(session)

    @pytest.mark.parametrize("at", [None, "1 hour", 3600], ids=["instant", "text", "seconds"])
    def test_when_it_is_due(self, session: Session, at: Any) -> None:
        at = at or datetime.now(UTC) + HOUR
        later = Task()
        assert later.enqueue(session, at)
        paused = added(session, Task())
        assert paused.pause(session)
        assert paused.resume(session, at)
        session.commit()
        session.refresh(later)
        for row in (later, paused):
            assert row.retry_at is not None
            assert abs(row.retry_at - datetime.now(UTC) - HOUR) < timedelta(minutes=5)

    def test_times_without_a_zone_are_refused(self, session: Session) -> None:
        row = Task()
        with pytest.raises(InvalidDuration):
            row.enqueue(session, datetime(2026, 1, 1))  # noqa: DTZ001
        session.add(Task(retry_at=datetime(2026, 1, 1)))  # noqa: DTZ001
        with pytest.raises(InvalidDuration, match="aware"):
            session.flush()
        session.rollback()

    def test_a_row_without_a_key_cannot_be_paused(self, session: Session) -> None:
        with pytest.raises(UnidentifiedInstance):
            Task().pause(session)

    def test_a_row_that_is_not_there_is_not_moved(self, session: Session) -> None:
        row = added(session, Task())
        session.delete(row)
        session.commit()
        assert not Task(id=row.id).pause(session)

    def test_a_lease_of_two_hours_is_two_hours_whatever_the_zone(self, session: Session) -> None:
        row = added(session, Task())
        moment = datetime(2024, 3, 31, 1, 59, 59, 999_999, tzinfo=UTC)
        session.execute(update(Task).values(retry_at=moment))
        session.commit()
        session.refresh(row)
        assert row.retry_at == moment
        assert session.scalars(select(Task).where(Task.retry_at < moment + HOUR)).one() is row
        assert session.scalar(select(Task.retry_at.cast(BigInteger))) == moment.timestamp() * 1_000_000


class TestUpkeep:
    def test_counts_have_zeros_and_conditions(self, session: Session) -> None:
        session.add_all([Task(title="a"), Task(title="b")])
        counts = Task.status_counts(session)
        assert set(counts) == {"pending", "running", "succeeded", "failed", "paused", "cancelled"}
        assert set(counts.values()) == {0}  # nothing was flushed
        session.commit()
        assert Task.status_counts(session, where=Task.title == "a")["pending"] == 1

    def test_pruning_takes_what_has_ended_and_is_old_enough(self, session: Session) -> None:
        session.add_all([Task() for _ in range(4)])
        session.commit()
        first, second, third = Task.claim(session, 3)
        first.complete()
        second.cancel()
        assert Task.prune(session, "1 hour") == 0
        assert Task.prune(session, 0) == 2
        assert len(session.scalars(select(Task.id)).all()) == 2
        third.complete()

    def test_pruning_takes_rows_of_the_class_with_all_their_tables(self, session: Session) -> None:
        session.add_all([Document(), Letter(), Book(pages=1)])
        session.commit()
        for lease in Document.claim(session, 3):
            lease.complete()
        assert Letter.prune(session, 0) == 1
        assert Document.prune(session, 0) == 2
        assert session.scalars(select(Book.id)).all() == []

    def test_pruning_goes_by_the_key_that_the_mapper_knows(self, session: Session) -> None:
        session.add_all([Renumbered(id=1, code=2), Renumbered(id=2, code=1, retry_at=None)])
        session.commit()
        with Renumbered.start(session, 2):
            pass
        assert Renumbered.prune(session, 0) == 1
        assert [*session.scalars(select(Renumbered.id))] == [2]

    def test_pruning_goes_by_the_columns_that_join_the_tables(self, session: Session) -> None:
        session.add_all([Twist(a=1, b=2), Twist(a=2, b=1, retry_at=None)])
        session.commit()
        with Pair.start(session, (1, 2)):
            pass
        assert Pair.prune(session, 0) == 1
        assert [tuple(row) for row in session.execute(select(Twist.one, Twist.other))] == [(2, 1)]
        assert session.scalars(select(Pair)).one().a == 2

    def test_expressions(self, session: Session) -> None:
        due, running, expired = (added(session, Task(title=title)) for title in ("due", "running", "expired"))
        for row in (running, expired):
            Task.claim(session, where=Task.id == row.id)
        session.execute(update(Task).where(Task.id == expired.id).values(retry_at=datetime.now(UTC) - HOUR))
        session.commit()

        def found(condition: Any) -> list[str | None]:
            return [*session.scalars(select(Task.title).where(condition).order_by(Task.id))]

        assert found(Task.due()) == ["due", "expired"]
        assert found(Task.running()) == ["running"]
        assert found(Task.expired()) == ["expired"]
        assert due.title == "due"


class TestSteps:
    def test_a_row_goes_from_step_to_step_each_with_attempts_of_its_own(self, session: Session) -> None:
        row = added(session, Stage())
        with pytest.raises(ValueError, match="no"), Stage.claim(session)[0]:
            raise ValueError("no")
        assert Stage.claim(session, step="transcribe") == []
        [lease] = Stage.claim(session, step="download")
        assert (lease.step, lease.attempt) == ("download", 2)
        lease.complete(path="/a")
        [lease] = Stage.claim(session)
        assert (lease.step, lease.attempt, lease.row.path) == ("transcribe", 1, "/a")
        with lease.transaction(session) as again:
            again.path = "/b"
        session.refresh(row)
        assert (row.status, row.step, row.path) == ("succeeded", "transcribe", "/b")
        assert row.enqueue(session)
        assert row.step == "download"

    def test_a_retry_stays_at_the_step_that_failed(self, session: Session) -> None:
        row = added(session, Stage())
        session.execute(update(Stage).values(status="failed", step="transcribe", retry_at=None))
        session.commit()
        assert row.retry(session)
        assert row.step == "transcribe"


class TestGuard:
    def test_a_flush_past_the_queue_is_told_with_its_place(self, session: Session) -> None:
        row = added(session, Task())
        row.status = "running"
        with pytest.warns(QueueColumnWarning, match="status of a Task") as caught:
            session.flush()
        assert caught[0].filename == __file__
        session.rollback()

    def test_other_columns_and_new_rows_are_the_users(self, session: Session) -> None:
        row = added(session, Task(status="paused", retry_at=None, priority=3))
        row.title, row.priority = "new", 4
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            session.commit()

    def test_an_old_copy_that_is_saved_takes_nothing_from_the_worker(
        self, session: Session, other: Session
    ) -> None:
        row = added(session, Task())
        copy = other.get_one(Task, row.id)
        other.rollback()
        [lease] = Task.claim(session)
        copy = other.merge(copy)
        copy.title = "mine"
        other.commit()
        assert Task.claim(other) == []
        lease.complete()
        session.refresh(row)
        assert (row.title, row.status) == ("mine", "succeeded")

    def test_an_old_copy_that_is_merged_brings_no_lease_back(self, session: Session, other: Session) -> None:
        row = added(session, Task())
        copy = other.get_one(Task, row.id)
        other.expunge(copy)
        other.rollback()
        copy.title = "mine"
        [lease] = Task.claim(session)
        other.merge(copy)
        with pytest.warns(QueueColumnWarning, match="left out"):
            other.commit()
        assert Task.claim(other) == []
        lease.complete()
        session.refresh(row)
        assert (row.title, row.status, row.lease_token) == ("mine", "succeeded", lease.token)

    @pytest.mark.parametrize("guard", ["raise", "off"])
    def test_it_can_be_an_error_or_nothing(
        self, session: Session, monkeypatch: pytest.MonkeyPatch, guard: Any
    ) -> None:
        monkeypatch.setattr(Task, "__queue__", QueueOptions(guard=guard))
        row = added(session, Task())
        row.retry_at = None
        if guard == "raise":
            with pytest.raises(QueueColumnWarning):
                session.flush()
        else:
            session.flush()
        session.rollback()


def test_a_bad_queue_is_told_when_its_class_is_defined() -> None:
    class Base(DeclarativeBase):
        pass

    with pytest.raises(ConfigurationError, match="__queue__"):

        class Bad(Queued, Base):
            __tablename__ = "bad"
            __queue__ = {"lease": 5}  # type: ignore[assignment]  # noqa: RUF012
            id: Mapped[int] = mapped_column(primary_key=True)
