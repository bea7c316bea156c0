"""Desks on the databases of sessions: on connections of the library's own beside an engine."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, select
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import set_committed_value
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.util import greenlet_spawn

from reservable.backends.database.backend import is_private_memory
from reservable.backends.database.connections import Connections
from reservable.backends.database.dialects import check_version
from reservable.backends.database.failures import core_errors, explained
from reservable.errors import BackendError, NotSupported
from reservable.leasing import statements
from reservable.leasing.asking import BEGIN
from reservable.leasing.desk import Desk
from reservable.leasing.parameters import Held, held_values, once
from reservable.leasing.transaction import transaction
from reservable.sqlalchemy import homes
from reservable.sqlalchemy.greenlets import in_greenlet
from reservable.sqlalchemy.homes import SCHEMAS
from reservable.sqlalchemy.queue.queues import MappedQueue
from reservable.sqlalchemy.queue.transaction import SessionCaller
from reservable.sqlalchemy.taking import awaited_session_of, session_of

T = TypeVar("T")


class SessionDesk(Desk):
    """One queue in the database of an engine: in a greenlet of SQLAlchemy's where the driver is asyncio's."""

    queue: MappedQueue

    def __init__(self, queue: MappedQueue, engine: Engine, schemas: Mapping[Any, Any] | None) -> None:
        super().__init__(queue, engine.dialect)
        self.engine = engine
        self.in_memory = is_private_memory(engine)
        self.schemas = schemas
        self._own: Connections | None = None if self.in_memory else homes.reader_of(engine)
        self.connections = self._own
        self.takes_text = not schemas
        self._checked = False

    def once(self, work: Callable[[Connection], T], *, whole: bool) -> T:
        try:
            with (self._own or self).engine.connect() as connection:
                if not self._checked:
                    check_version(self.dialect)
                    self._checked = True
                if self.schemas:
                    connection.execution_options(**{SCHEMAS: self.schemas})
                if self._own is None:
                    return self._on_the_callers(connection, work)
                return self.in_words(connection, work, BEGIN[self.kind]) if whole else work(connection)
        except core_errors(self.dialect) as error:
            raise explained(error, self.dialect, self.engine.url) from error

    def _on_the_callers(self, connection: Connection, work: Callable[[Connection], T]) -> T:
        """A database in memory has one connection, and perhaps the caller is using it."""
        driver: Any = connection.connection.driver_connection
        if driver.in_transaction:
            raise BackendError(
                "this database is in memory, with one connection for all, and a transaction is open on it: "
                "commit the session first"
            )
        with connection.begin():
            return work(connection)

    def load(self, connection: Connection, held: Sequence[Held]) -> list[Any]:
        queue, values = self.queue, held_values(held)
        statement = once(
            queue.kept, ("load", *values), lambda: select(queue.entity).where(statements.owned(queue, held))
        )
        session = Session(connection, autoflush=False, expire_on_commit=False)
        rows = [*session.scalars(statement, values).unique()]
        session.expunge_all()  # and it is dropped: closing it would end what the connection has open
        return rows

    def show(self, row: Any, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if not isinstance(value, ClauseElement):
                set_committed_value(row, name, value)

    def transaction(self, lease: Any, session: Any) -> AbstractContextManager[Any]:
        given = awaited_session_of(session) if lease.is_awaited else session_of(session)
        return transaction(lease, self, SessionCaller(self.queue, self.engine, given))

    def spawned(self, work: Callable[..., T], *arguments: Any) -> Coroutine[Any, Any, T]:
        return greenlet_spawn(work, *arguments)


def desk_of(queue: MappedQueue, session: Session) -> SessionDesk:
    """The desk of the database that the session writes this queue's rows to.

    Raises `NotSupported` for databases without what it takes, and for blocking code on an asyncio driver;
    `BackendError` when the session itself holds SQLite's write lock, for that would not end by waiting.
    """
    engine = homes.engine_of(queue.mapper, session)
    if engine.dialect.is_async and not in_greenlet():
        raise NotSupported(
            f"the database of this session is reached by {engine.driver}, which is awaited: give the AsyncSession to "
            "the verbs that begin with an a (aclaim, astart, areap ...)"
        )
    if engine.dialect.name == "sqlite" and homes.is_writing(
        session, lambda other: other.dialect is engine.dialect
    ):
        raise BackendError(
            "this session has written to the SQLite file and not committed, so nobody else can write: commit first"
        )
    schemas = homes.schemas_of(session)
    key = ("queue", queue.mapper, tuple(schemas.items()) if schemas else None)
    return homes.kept_for(engine, key, lambda: SessionDesk(queue, engine, schemas))
