"""While a row is claimed, finished or operated on, nobody is held up who does not want this very row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from sqlalchemy import Connection, Engine, create_engine, event, insert, select, text
from sqlalchemy.orm import Session

from reservable.leasing.desk import Desk
from tests.sqlalchemy.queue.conftest import Queues, emptied
from tests.sqlalchemy.queue.models import Document, Owner, Remark, Task
from tests.sqlalchemy.queue.rows import states

PARENT = "UPDATE owners SET name = 'changed'"
CHILD = "INSERT INTO remarks (id, document_id) SELECT 7, id FROM documents"
SETTINGS = {"postgresql": "SET lock_timeout = '300ms'", "mysql": "SET SESSION innodb_lock_wait_timeout = 1"}

Act = Callable[[], None]


@pytest.fixture(params=["postgresql", "mariadb"])
def engine(request: pytest.FixtureRequest, queues: Queues) -> Engine:
    """Where rows can be locked."""
    return emptied(request, queues, request.param)


@pytest.fixture
def impatient(engine: Engine) -> Iterator[Connection]:
    """A connection that does not wait for locks."""
    other = create_engine(engine.url)
    with other.connect() as connection:
        connection.execute(text(SETTINGS["mysql" if other.dialect.name == "mariadb" else other.dialect.name]))
        connection.commit()
        yield connection
    other.dispose()


@pytest.fixture(params=["the parent is changed", "a child is added"])
def act(request: pytest.FixtureRequest, impatient: Connection) -> Act:
    """What somebody else does to the row's neighbours."""
    child = request.param == "a child is added"
    if child and impatient.dialect.name != "postgresql":
        pytest.skip("to InnoDB a reference is a lock on the row itself")

    def act() -> None:
        assert impatient.execute(text(CHILD if child else PARENT)).rowcount == 1
        impatient.rollback()

    return act


@pytest.fixture
def document(session: Session) -> Document:
    document = Document(owner=Owner(name="owner"))
    session.add(document)
    session.commit()
    return document


@contextmanager
def before_it_is_committed(action: Act) -> Iterator[list[str]]:
    """Do something once a claim has been written, in its own transaction that holds its locks."""
    seen: list[str] = []
    failed: list[Exception] = []
    ask = Desk.ask

    def in_one(self: Desk, work: Any, *, whole: bool = False) -> Any:
        return ask(self, work, whole=True)

    def look(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith(("WITH", "UPDATE")) and not seen:
            seen.append(statement)
        elif statement == "COMMIT" and len(seen) == 1:
            seen.append(statement)
            try:
                action()
            except Exception as error:
                failed.append(error)  # raised here, it would be taken for the claim's own, and asked again

    event.listen(Engine, "before_cursor_execute", look)
    try:
        with patch.object(Desk, "ask", in_one):
            yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", look)
    assert len(seen) == 2
    assert failed == []


def test_a_claim_holds_up_neither_parents_nor_children(
    session: Session, document: Document, act: Act
) -> None:
    owned = Document.owner.has(Owner.name == "owner")
    with before_it_is_committed(act):
        [lease] = Document.claim(session, where=owned)
    lease.complete()


def test_a_transaction_of_a_lease_holds_up_neither_parents_nor_children(
    session: Session, document: Document, act: Act
) -> None:
    [lease] = Document.claim(session)
    with lease.transaction(session):
        act()


@pytest.mark.parametrize("verb", ["pause", "cancel", "cancel for a reason"])
def test_an_operator_holds_up_neither_parents_nor_children(
    session: Session, document: Document, act: Act, verb: str
) -> None:
    Document.claim(session)
    verbs = {
        "pause": lambda: document.pause(session),
        "cancel": lambda: document.cancel(session),
        "cancel for a reason": lambda: document.cancel(session, "enough"),
    }
    assert verbs[verb]()
    act()
    session.commit()


def test_neither_a_parent_that_is_locked_nor_a_child_that_is_added_hides_a_row(
    session: Session, other: Session, document: Document
) -> None:
    other.execute(select(Owner.id).with_for_update())
    if other.get_bind().dialect.name == "postgresql":
        other.add(Remark(document_id=document.id))
        other.flush()
    [lease] = Document.claim(session, where=Document.owner.has(Owner.name == "owner"))
    lease.complete()
    other.rollback()


def test_workers_claim_others_while_a_claim_is_on_its_way(session: Session, other: Session) -> None:
    session.execute(insert(Task), [{"title": str(number)} for number in range(1000)])
    session.commit()
    claimed: list[int] = []

    def claim_others() -> None:
        for limit in (1, 5):
            found = [lease.pk[0] for lease in Task.claim(other, limit)]
            assert len(found) == limit
            claimed.extend(found)

    with before_it_is_committed(claim_others):
        claimed += [lease.pk[0] for lease in Task.claim(session, 3)]
    assert len({*claimed}) == 9
    assert sorted(claimed) == sorted(pk for pk, (status, _) in states(session).items() if status == "running")
