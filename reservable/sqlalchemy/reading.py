"""Read through a connection of our own, on the caller's database, and try again where that can help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Executable
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import Mapper, Session

from reservable.backends.database.backend import DatabaseBackend, is_private_memory
from reservable.backends.database.connections import Connections
from reservable.backends.database.failures import core_errors, explained
from reservable.backends.database.repeating import Told, steadily_told
from reservable.sqlalchemy import homes
from reservable.sqlalchemy.homes import SCHEMAS

T = TypeVar("T")


class Reading:
    """Committed rows of the database that a session writes a mapper's rows to."""

    def __init__(self, session: Session, mapper: Mapper[Any], engine: Engine) -> None:
        self._session = session
        self._mapper = mapper
        self._engine = engine
        # A database in memory has no second connection: there the caller's own is all there is.
        self._own = None if is_private_memory(engine) else homes.reader_of(engine)
        self._schemas = homes.schemas_of(session)

    def renames_schemas(self, statement: Executable) -> bool:
        """Whether the statement's tables are not where their names say (`schema_translate_map`)."""
        return bool(self._schemas or statement.get_execution_options().get(SCHEMAS))

    @property
    def connections(self) -> Connections | None:
        """The library's own connections; None where there can be none, or where schemas are renamed on them."""
        return None if self._schemas else self._own

    def __call__(self, work: Callable[[Connection], T], *, backend: DatabaseBackend | None = None) -> T:
        """What the work returns; repeated after a deadlock or a broken connection. Raises `BackendError`."""

        def once() -> T:
            try:
                if self._own is None:
                    return work(self._session.connection(bind_arguments={"mapper": self._mapper}))
                with self._own.engine.connect() as connection:
                    if self._schemas:
                        connection.execution_options(**{SCHEMAS: self._schemas})  # in place
                    return work(connection)
            except core_errors(self._engine.dialect) as error:
                raise explained(error, self._engine.dialect, self._engine.url) from error

        return steadily(once, self._engine.dialect, backend)


def steadily(work: Callable[[], T], dialect: Dialect, backend: DatabaseBackend | None = None) -> T:
    """What the work returns; repeated while that can help, with the backend's table made if it is missing."""
    told: Told[T] = steadily_told(work if backend is None else lambda: backend.attempt(work), dialect)
    return told.answer
