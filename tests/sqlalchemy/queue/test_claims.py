"""Claims: order, limits, conditions, takeovers, and rows whose attempts are used up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine, create_engine, func, insert, select, text, update
from sqlalchemy.dialects import mysql, oracle
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateTable

from reservable import ConfigurationError, InvalidKey, LeaseLost, NotClaimable, NotSupported
from reservable.backends.database.dialects import kind
from tests.sqlalchemy.queue.models import Book, Code, Document, Letter, Marked, Owner, Seat, Task

HOUR = timedelta(hours=1)


def add(session: Session, *rows: Any) -> list[Any]:
    session.add_all(rows)
    session.commit()
    return [row.id for row in rows]


def over(session: Session, *pks: int) -> None:
    """The leases on these rows run out."""
    session.execute(update(Task).where(Task.id.in_(pks)).values(retry_at=datetime.now(UTC) - HOUR))
    session.commit()


def pks(leases: list[Any]) -> list[Any]:
    return [lease.pk[0] for lease in leases]


def test_an_added_row_is_due_at_once(session: Session) -> None:
    for _ in range(50):
        [pk] = add(session, Task())
        assert pks(Task.claim(session)) == [pk]


def test_a_row_inserted_by_hand_is_due_at_once(session: Session) -> None:
    session.execute(text("INSERT INTO tasks (title) VALUES ('by hand')"))
    session.commit()
    [lease] = Task.claim(session)
    assert (lease.row.title, lease.row.priority, lease.attempt, lease.token) == ("by hand", 0, 1, 1)


def test_a_row_without_a_due_time_is_not_scheduled(session: Session) -> None:
    [pk] = add(session, Task(retry_at=None))
    assert Task.claim(session) == []
    assert session.get_one(Task, pk).enqueue(session)
    session.commit()
    assert pks(Task.claim(session)) == [pk]


def test_higher_priorities_come_first_then_what_is_due_longer_then_the_key(session: Session) -> None:
    now = datetime.now(UTC)
    a, b, c, d, e = add(
        session,
        Task(retry_at=now - HOUR),
        Task(retry_at=now - 2 * HOUR),
        Task(priority=5, retry_at=now - HOUR),
        Task(priority=5, retry_at=now - HOUR),
        Task(priority=-1, retry_at=now - 9 * HOUR),
    )
    add(session, Task(retry_at=None, priority=9), Task(retry_at=now + HOUR, priority=9))
    assert pks(Task.claim(session, 2)) == [c, d]
    assert pks(Task.claim(session, 1)) == [b]
    assert pks(Task.claim(session, 10)) == [a, e]


def test_a_lease_that_ran_out_takes_its_place_among_what_is_pending(session: Session) -> None:
    now = datetime.now(UTC)
    first, lost, last = add(
        session, Task(retry_at=now - 9 * HOUR), Task(priority=1), Task(retry_at=now - HOUR / 2)
    )
    assert pks(Task.claim(session)) == [lost]
    session.execute(update(Task).where(Task.id == lost).values(priority=0))
    over(session, lost)
    assert pks(Task.claim(session, 3)) == [first, lost, last]


def test_a_lease_that_stands_is_never_taken_along(session: Session) -> None:
    add(session, Task(), Task())
    one, two = pks(Task.claim(session, 2))
    over(session, two)
    assert pks(Task.claim(session, 2)) == [two]
    assert one != two


def test_rows_used_up_fail_on_the_way_and_do_not_use_up_the_limit(session: Session) -> None:
    spent, fresh = add(session, Task(priority=1), Task())
    for _ in range(2):
        assert pks(Task.claim(session)) == [spent]
        over(session, spent)
    assert pks(Task.claim(session, 1)) == [fresh]
    row = session.get_one(Task, spent, populate_existing=True)
    assert (row.status, row.attempts, row.retry_at, row.leased_by) == ("failed", 2, None, None)
    assert row.last_error is not None
    assert (row.last_error["message"], row.last_error["attempt"]) == ("lease expired", 2)
    assert row.finished_at is not None


def test_the_lease_has_the_row_as_it_was_claimed(session: Session) -> None:
    add(session, Task(title="x"))
    [lease] = Task.claim(session, worker="me")
    row = lease.row
    assert row not in session
    assert (row.title, row.status, row.leased_by, row.attempts) == ("x", "running", "me", 1)
    assert row.retry_at == lease.expires_at
    assert timedelta(minutes=59) < row.retry_at - datetime.now(UTC) <= timedelta(hours=1, seconds=5)


def test_the_condition_is_inside_the_claim(session: Session) -> None:
    add(session, *(Task(title=f"t{number}") for number in range(20)))
    assert [lease.row.title for lease in Task.claim(session, 3, where=Task.title.in_(["t7", "t9"]))] == [
        "t7",
        "t9",
    ]
    assert Task.claim(session, where=Task.title == "t7") == []


@pytest.mark.parametrize("limit", [1, 5])
def test_never_more_rows_change_than_are_returned(session: Session, engine: Engine, limit: int) -> None:
    session.execute(insert(Task), [{"title": "x"} for _ in range(2000)])
    session.commit()
    claimed = 0
    settings: list[dict[str, Any]] = [{}]
    if engine.dialect.name == "postgresql":
        settings += [{"options": f"-c enable_{way}=off"} for way in ("hashjoin", "nestloop", "seqscan")]
    for number, setting in enumerate(settings, 1):
        other = create_engine(engine.url, connect_args=setting)
        with Session(other) as worker:
            claimed += len(Task.claim(worker, limit))
        other.dispose()
        running = select(func.count()).where(Task.status == "running")
        assert session.scalar(running) == claimed == limit * number
        session.commit()


def test_workers_pass_over_what_another_has_locked(session: Session, other: Session) -> None:
    if session.get_bind().dialect.name == "sqlite":
        pytest.skip("SQLite has one writer")
    one, two = add(session, Task(), Task())
    other.execute(select(Task.id).where(Task.id == one).with_for_update())
    assert pks(Task.claim(session, 2)) == [two]
    other.rollback()
    assert pks(Task.claim(session, 2)) == [one]


def test_a_claim_leaves_the_callers_transaction_alone(session: Session) -> None:
    if session.get_bind().dialect.name == "sqlite":
        pytest.skip("the file has one writer")
    add(session, Task())
    session.add(Owner(name="not committed"))
    session.flush()
    [lease] = Task.claim(session)
    session.rollback()
    assert session.scalar(select(func.count(Owner.id))) == 0
    assert session.get_one(Task, lease.pk[0]).status == "running"


def test_a_subclass_claims_its_own_rows_alone(session: Session) -> None:
    owner = Owner(name="o")
    session.add_all([Document(owner=owner), Letter(owner=owner), Document()])
    session.commit()
    [lease] = Letter.claim(session, 5)
    assert type(lease.row) is Letter
    assert lease.row.owner is not None  # loaded along, though the row is in no session
    assert len(Document.claim(session, 5)) == 2


def test_a_subclass_with_a_table_of_its_own(session: Session) -> None:
    session.add_all([Document(), Book(pages=3), Book(pages=4)])
    session.commit()
    leases = Book.claim(session, 5, where=Book.pages > 3)
    assert [lease.row.pages for lease in leases] == [4]
    with pytest.raises(NotSupported, match="pages"):
        leases[0].set(pages=5)
    with leases[0].transaction(session) as book:
        book.pages = 5
    assert sorted(type(lease.row).__name__ for lease in Document.claim(session, 5)) == ["Book", "Document"]
    assert session.scalars(select(Book.pages).where(Book.status == "succeeded")).all() == [5]


def test_the_two_mixins_compose(session: Session) -> None:
    free, held = Document(), Document()
    session.add_all([held, free])
    session.commit()
    assert held.reserve("maintenance", 60)
    session.commit()
    [lease] = Document.claim(session, 5, where=Document.unreserved("maintenance"))
    assert lease.pk == (free.id,)


def test_statuses_may_be_numbers(session: Session) -> None:
    session.add_all([Code(), Code(status=99)])
    session.commit()
    with Code.claim(session)[0] as lease:
        assert lease.row.status == 20
    assert Code.status_counts(session) == {10: 0, 20: 0, 30: 1, 40: 0, 50: 0, 99: 1}
    with pytest.raises(NotSupported, match="paused"):
        lease.row.pause(session)


def test_primary_keys_of_two_parts(session: Session) -> None:
    session.add_all([Seat(hall="b", number=1), Seat(hall="a", number=2), Seat(hall="a", number=1)])
    session.execute(text("SELECT 1"))
    session.commit()
    session.execute(update(Seat).values(retry_at=datetime.now(UTC) - HOUR))
    session.commit()
    leases = Seat.claim(session, 2)
    assert [lease.pk for lease in leases] == [("a", 1), ("a", 2)]
    assert type(leases[0]).complete_all(leases) == leases
    with Seat.start(session, ("b", 1)) as lease:
        lease.heartbeat()
    assert Seat.status_counts(session)["succeeded"] == 3


class TestStart:
    def test_one_row_by_its_key(self, session: Session) -> None:
        _, pk = add(session, Task(), Task())
        with Task.start(session, pk) as lease:
            assert lease.pk == (pk,)
        assert session.get_one(Task, pk, populate_existing=True).status == "succeeded"

    def test_why_it_cannot_be_started(self, session: Session) -> None:
        later, running, paused = add(session, Task(retry_at=datetime.now(UTC) + HOUR), Task(), Task())
        with Task.start(session, running):
            reasons = {later: "not due", running: "running", 10**6: "missing"}
            session.get_one(Task, paused).pause(session)
            session.commit()
            for pk, reason in (reasons | {paused: "paused"}).items():
                with pytest.raises(NotClaimable) as caught, Task.start(session, pk):
                    pass
                assert caught.value.reason == reason
        with pytest.raises(NotClaimable) as caught, Task.start(session, running):
            pass
        assert caught.value.reason == "succeeded"

    def test_before_it_is_due_when_told_so(self, session: Session) -> None:
        [pk] = add(session, Task(retry_at=datetime.now(UTC) + HOUR))
        with Task.start(session, pk, ignore_due=True) as lease:
            assert lease.attempt == 1

    def test_a_lease_that_ran_out_is_taken_over_and_the_stale_one_changes_nothing(
        self, session: Session
    ) -> None:
        [pk] = add(session, Task())
        [stale] = Task.claim(session, worker="same")
        over(session, pk)
        with Task.start(session, pk) as lease:
            assert lease.token == stale.token + 1
            for verb in (
                stale.complete,
                stale.release,
                stale.heartbeat,
                lambda: stale.fail("no"),
                stale.cancel,
            ):
                with pytest.raises(LeaseLost):
                    verb()
            assert stale.lost.is_set()
            assert not lease.lost.is_set()
        row = session.get_one(Task, pk, populate_existing=True)
        assert (row.status, row.attempts, row.errors) == ("succeeded", 2, [])

    def test_a_row_of_another_class_is_missing(self, session: Session) -> None:
        [pk] = add(session, Document())
        with pytest.raises(NotClaimable, match="missing"), Letter.start(session, pk):
            pass
        with Document.start(session, pk) as lease:
            assert lease.attempt == 1

    @pytest.mark.parametrize("pk", [(1, 2), None, ()])
    def test_keys_that_are_none(self, session: Session, pk: Any) -> None:
        with pytest.raises(InvalidKey), Task.start(session, pk):
            pass


@pytest.mark.parametrize(
    "bad",
    [{"limit": 0}, {"limit": True}, {"limit": "2"}, {"worker": ""}, {"worker": 7}, {"step": "download"}],
)
def test_bad_arguments(session: Session, bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Task.claim(session, **bad)


def test_a_worker_of_any_length_can_be_stored(session: Session) -> None:
    add(session, Task(), Task())
    for worker in ("é" * 1000, "host\x00name"):
        with Task.claim(session, worker=worker)[0] as lease:
            assert len(lease.row.leased_by) <= 255


@pytest.mark.parametrize("status", ["pending", "running", "succeeded", "failed", "paused", "cancelled"])
@pytest.mark.parametrize(("hours", "due"), [(None, False), (-1, True), (1, False)])
def test_which_rows_can_be_claimed(session: Session, status: str, hours: int | None, due: bool) -> None:
    retry_at = None if hours is None else datetime.now(UTC) + hours * HOUR
    add(session, Task(status=status, retry_at=retry_at, attempts=1 if status == "running" else 0))
    expected = due and status in ("pending", "running")
    assert len(session.scalars(select(Task).where(Task.due())).all()) == expected
    session.commit()
    assert len(Task.claim(session)) == expected


def test_a_server_that_is_too_old_is_told_and_never_an_empty_queue(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(session, Task())
    monkeypatch.setattr("reservable.backends.database.dialects._version", lambda _: (1, 0))
    engine = create_engine(session.get_bind().engine.url)
    with Session(engine) as fresh, pytest.raises(NotSupported, match="later"):
        Task.claim(fresh)
    engine.dispose()


def test_other_databases_are_refused() -> None:
    with pytest.raises(NotSupported, match="oracle"):
        kind(oracle.dialect())


def test_a_session_that_has_written_to_the_file_is_told_at_once(session: Session) -> None:
    if session.get_bind().dialect.name != "sqlite":
        pytest.skip("only a file has one writer")
    session.add(Task())
    session.flush()
    with pytest.raises(Exception, match="commit first"):
        Task.claim(session)


def test_a_key_may_be_typed_as_people_do(session: Session) -> None:
    marked = Marked(id=uuid4())
    task = Task()
    session.add_all([marked, task])
    session.commit()
    for model, pk in (
        (Marked, marked.id),
        (Marked, str(marked.id)),
        (Marked, marked.id.hex),
        (Task, task.id),
        (Task, str(task.id)),
    ):
        with model.start(session, pk) as lease:
            lease.release()
    for kind_, bad in ((Marked, "none"), (Task, "x"), (Task, 1.5), (Task, 2**70)):
        with pytest.raises(InvalidKey), kind_.start(session, bad):
            raise AssertionError


def test_a_workers_name_is_in_any_language(session: Session) -> None:
    for name in ("渲染-3", "🎬"):
        add(session, Task())
        [lease] = Task.claim(session, worker=name)
        assert lease.row.leased_by == name
        lease.complete()
    created = str(CreateTable(Task.__table__).compile(dialect=mysql.dialect()))  # type: ignore[arg-type]
    assert "leased_by VARCHAR(255) CHARACTER SET utf8mb4" in created  # whatever the database's own is
