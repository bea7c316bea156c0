"""Rows that somebody else's transaction has written and not committed: nobody waits for them without end."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, select, update
from sqlalchemy.orm import Session

from reservable import BackendError, NotSupported
from tests.sqlalchemy.queue.conftest import Queues, emptied
from tests.sqlalchemy.queue.models import Kept, Task
from tests.sqlalchemy.queue.rows import added, states


@pytest.fixture(params=["postgresql", "mariadb"])
def engine(request: pytest.FixtureRequest, queues: Queues) -> Engine:
    """SQLite has one lock for all rows."""
    return emptied(request, queues, request.param)


def write(other: Session, model: Any, pk: int) -> None:
    """Somebody changes a column of the row that is none of the queue's, and goes on."""
    other.get_one(model, pk).title = "written meanwhile"
    other.flush()


def test_one_holds_up_no_heartbeat_of_another(session: Session, other: Session) -> None:
    locked, *free = added(session, Kept(), Kept(), Kept())
    leases = Kept.claim(session, 3, renew=True)
    write(other, Kept, locked)
    until = time.monotonic() + 2.5  # longer than the lease
    while time.monotonic() < until:
        assert Kept.claim(session) == []
    for lease in leases[1:]:
        assert not lease.lost.is_set()
        lease.complete()
    other.rollback()
    assert [states(session, Kept)[one] for one in free] == [("succeeded", 1), ("succeeded", 1)]


def test_one_is_kept_alive_again_when_it_is_free(session: Session, other: Session) -> None:
    [one] = added(session, Kept())
    [lease] = Kept.claim(session, renew=True)
    write(other, Kept, one)
    time.sleep(1.2)  # past the first heartbeat
    other.commit()
    time.sleep(1.5)  # past the end of the claim
    assert Kept.claim(session) == []
    lease.complete()


def test_one_whose_attempts_are_used_up_holds_up_no_claim(session: Session, other: Session) -> None:
    used_up, free = added(session, Task(priority=1), Task())
    over = {"retry_at": datetime.now(UTC) - timedelta(hours=1), "attempts": 2, "status": "running"}
    session.execute(update(Task).where(Task.id == used_up).values(over))
    session.commit()
    write(other, Task, used_up)
    [lease] = Task.claim(session, 2)
    assert lease.pk == (free,)
    assert Task.reap(session) == 0
    other.rollback()
    assert Task.reap(session) == 1


VERBS: dict[str, Callable[[Any], object]] = {
    "complete": lambda lease: lease.complete(),
    "update": lambda lease: lease.update(title="mine"),
    "heartbeat": lambda lease: lease.heartbeat(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_written_to_one_fails_after_a_while_and_succeeds_later(
    session: Session, other: Session, verb: str
) -> None:
    [one] = added(session, Task(title="new"))
    [lease] = Task.claim(session)
    write(other, Task, one)
    with pytest.raises(BackendError, match=r"another transaction|Lock wait"):
        VERBS[verb](lease)
    assert not lease.lost.is_set()
    other.rollback()
    VERBS[verb](lease)


def test_one_cannot_be_started(session: Session, other: Session) -> None:
    [one] = added(session, Task())
    write(other, Task, one)
    with pytest.raises(BackendError, match=r"another transaction|Lock wait"), Task.start(session, one):
        pass
    other.rollback()
    with Task.start(session, one) as lease:
        assert lease.attempt == 1


@pytest.mark.parametrize("verb", ["complete", "update", "heartbeat", "release", "fail"])
def test_inside_the_transaction_of_a_lease_its_other_verbs_are_refused(session: Session, verb: str) -> None:
    [one] = added(session, Task(title="new"))
    [lease] = Task.claim(session)
    with lease.transaction(session) as row:
        with pytest.raises(NotSupported, match="inside its transaction"):
            getattr(lease, verb)(*(["no"] if verb == "fail" else []))
        lease.set(title="set")
        assert row.id == one
    assert session.execute(select(Task.title, Task.status)).one() == ("set", "succeeded")
