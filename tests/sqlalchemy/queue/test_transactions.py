"""`lease.transaction`: what sessions it refuses, and what their end means."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Engine, create_engine, select
from sqlalchemy.orm import Session

from reservable import Lease, NotSupported
from tests.sqlalchemy.queue.models import Base, Task
from tests.sqlalchemy.queue.rows import added, states


def test_a_session_of_another_database_is_refused(
    session: Session, fresh_database: Callable[[str], str]
) -> None:
    engine = create_engine(fresh_database("sqlite"))
    Base.metadata.create_all(engine)
    added(session, Task())
    [lease] = Task.claim(session)
    with Session(engine) as elsewhere:
        [theirs] = added(elsewhere, Task(id=lease.pk[0]))
        assert Task.claim(elsewhere)
        with pytest.raises(NotSupported, match="another database"), lease.transaction(elsewhere):
            pass
        assert states(elsewhere) == {theirs: ("running", 1)}
    engine.dispose()
    assert not lease.lost.is_set()
    lease.complete()


def test_another_engine_on_the_same_database_will_do(session: Session, url: str) -> None:
    [one] = added(session, Task())
    [lease] = Task.claim(session)
    engine = create_engine(url)
    with Session(engine) as same, lease.transaction(same) as row:
        row.title = "done"
    engine.dispose()
    assert states(session) == {one: ("succeeded", 1)}


def test_a_session_that_commits_by_itself_is_refused(session: Session, url: str) -> None:
    added(session, Task())
    [lease] = Task.claim(session)
    for engine in (
        create_engine(url, isolation_level="AUTOCOMMIT"),
        create_engine(url).execution_options(isolation_level="AUTOCOMMIT"),
    ):
        with (
            Session(engine) as careless,
            pytest.raises(NotSupported, match="AUTOCOMMIT"),
            lease.transaction(careless),
        ):
            pass
        engine.dispose()
    lease.complete()


def test_a_transaction_that_cannot_see_the_claim_is_told_so(session: Session, url: str) -> None:
    if not url.startswith("postgresql"):
        pytest.skip("MariaDB shows what it changes, and SQLite's writers wait for each other")
    [one] = added(session, Task())
    engine = create_engine(url, isolation_level="REPEATABLE READ")
    with Session(engine) as old:
        assert old.scalar(select(Task.status)) == "pending"
        [lease] = Task.claim(session)
        with pytest.raises(NotSupported, match="began before"), lease.transaction(old):
            pass
        assert not lease.lost.is_set()
        with lease.transaction(old) as row:  # it was rolled back
            row.title = "done"
    engine.dispose()
    assert states(session) == {one: ("succeeded", 1)}


def test_a_row_may_be_deleted_by_its_worker(session: Session) -> None:
    added(session, Task())
    [lease] = Task.claim(session)
    with lease.transaction(session) as row:
        session.delete(row)
    assert lease.finished
    assert states(session) == {}


@pytest.mark.parametrize("engine", ["postgresql", "mariadb"], indirect=True)
def test_a_session_that_sees_the_row_as_it_was_before_a_heartbeat(engine: Engine) -> None:
    repeating = engine.execution_options(isolation_level="REPEATABLE READ")
    with Session(repeating) as session:
        added(session, Task())
        [lease] = Task.claim(session)
        session.scalars(select(Task.title)).all()  # what it sees is from now
        lease.heartbeat()
        if engine.dialect.name == "postgresql":
            with pytest.raises(NotSupported, match="kept alive"), lease.transaction(session):
                raise AssertionError
            session.rollback()
        with lease.transaction(session) as row:
            row.title = "done"
        assert session.scalars(select(Task.title)).all() == ["done"]


def test_a_lease_is_not_completed_with_others_inside_its_own_transaction(session: Session) -> None:
    added(session, Task(), Task())
    first, second = Task.claim(session, 2)
    with first.transaction(session):
        with pytest.raises(NotSupported, match="no other verbs"):
            Lease.complete_all([second, first])
        assert not second.finished
    assert Lease.complete_all([first, second]) == [second]
