"""An operator's verbs on a mapped object, in a session's transaction."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from sqlalchemy import inspect
from sqlalchemy.orm import Session, SessionTransaction
from sqlalchemy.orm.attributes import set_committed_value

from reservable.leasing import statements
from reservable.leasing.columns import STATE
from reservable.leasing.operators import Operator, moment
from reservable.queue.statuses import Status
from reservable.sqlalchemy.identity import row_of
from reservable.sqlalchemy.queue.queues import queue_of
from reservable.sqlalchemy.taking import session_of

_SHOWN = "reservable_shown"


class SessionOperator(Operator):
    """Raises `UnidentifiedInstance` for an object that is no row yet."""

    def __init__(self, session: Session, row: Any) -> None:
        _, values = row_of(row)
        self.pk = tuple(values)
        self.queue = queue_of(type(row))
        self._row = row
        self._bind = {"bind_arguments": {"mapper": self.queue.mapper}}
        self._session = session_of(session)

    def execute(self, statement: Any) -> Any:
        return self._session.execute(statement, **self._bind)

    def show(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            set_committed_value(self._row, name, value)
        if self._session.in_nested_transaction():
            self._session.info.setdefault(_SHOWN, WeakSet()).add(self._row)


def after_soft_rollback(session: Session, previous: SessionTransaction) -> None:
    """What was shown in a savepoint that is rolled back may not be so: it is read again when it is asked for."""
    for row in session.info.pop(_SHOWN, ()) if previous.nested else ():
        if row in session:
            session.expire(row, [name for name in STATE if name in inspect(row).attrs])


def enqueue(session: Session, row: Any, at: Any) -> bool:
    """Queue a row that has ended, or that was never scheduled; a new one is added to the session."""
    state = inspect(row)
    if not (state.transient or state.pending):
        return SessionOperator(session, row).enqueue(at)
    due = moment(at)
    if at is not None or "retry_at" in state.dict:  # else the column's default says now
        row.retry_at = statements.moment(due)
    row.status = queue_of(type(row)).statuses.value(Status.PENDING)
    session_of(session).add(row)
    return True
