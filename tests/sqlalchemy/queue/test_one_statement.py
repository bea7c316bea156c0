"""Every move is one statement: whatever is cut off behind it, the row is there, in the one state or the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.orm import Session

from reservable import BackendError, Lease
from reservable.backends.database.execution import TextStatement
from reservable.sqlalchemy.queue.desks import SessionDesk
from tests.sqlalchemy.queue.models import Task
from tests.sqlalchemy.queue.rows import added, states

VERBS: dict[str, tuple[Callable[[Lease], Any], tuple[str, int]]] = {
    "complete": (lambda lease: lease.complete(title="x"), ("succeeded", 1)),
    "fail": (lambda lease: lease.fail("no"), ("pending", 1)),
    "snooze": (lambda lease: lease.snooze("1 hour"), ("pending", 0)),
    "release": (lambda lease: lease.release(), ("pending", 0)),
    "cancel": (lambda lease: lease.cancel("no"), ("cancelled", 1)),
}


@pytest.mark.parametrize("verb", [*VERBS])
def test_a_fault_behind_the_first_statement_of_a_lease_finds_the_move_made(
    session: Session, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    [pk] = added(session, Task())
    [lease] = Task.claim(session)
    sent: list[str] = []

    def cut_off(does: Callable[..., Any]) -> Callable[..., Any]:
        def fault(*arguments: Any, **options: Any) -> Any:
            does(*arguments, **options)
            sent.append(verb)
            raise BackendError("cut off")

        return fault

    act, state = VERBS[verb]
    with monkeypatch.context() as patched:  # the two ways to the database, of which a move takes one
        patched.setattr(TextStatement, "changed", cut_off(TextStatement.changed))
        patched.setattr(SessionDesk, "once", cut_off(SessionDesk.once))
        with pytest.raises(BackendError, match="cut off"):
            act(lease)
    assert sent == [verb]
    assert states(session) == {pk: state}


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel", "retry", "enqueue"])
def test_an_operators_move_is_one_change(session: Session, engine: Engine, verb: str) -> None:
    before = {"resume": "paused", "retry": "failed", "enqueue": "succeeded"}.get(verb, "pending")
    row = Task(status=before)
    added(session, row)
    changes: list[str] = []

    def look(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("SELECT"):
            changes.append(statement.split(maxsplit=1)[0])

    event.listen(engine, "before_cursor_execute", look)
    try:
        assert getattr(row, verb)(session)
    finally:
        event.remove(engine, "before_cursor_execute", look)
    session.commit()
    assert changes == ["UPDATE"]
    assert len(states(session)) == 1
