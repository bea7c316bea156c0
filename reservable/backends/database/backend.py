"""Reservations in a table of a SQL database: PostgreSQL, MySQL 8, MariaDB 10.6+ or SQLite."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine

from reservable.backends.base import Capabilities, PlannedBackend
from reservable.backends.database import creation
from reservable.backends.database.connections import Connections
from reservable.backends.database.dialects import kind
from reservable.backends.database.execution import Execution
from reservable.backends.database.failures import NoTable, shown
from reservable.backends.database.schema import DEFAULT_TABLE, reservations_table
from reservable.backends.database.statements import Statements
from reservable.backends.database.verbs import DatabaseVerbs
from reservable.errors import BackendError, ConfigurationError
from reservable.names import check_prefix
from reservable.plans import Pause
from reservable.retrying import Contended

OWN_WRITE = (
    "the SQLite file is locked by this session's own uncommitted write, so no reservation can be written beside "
    "it: commit or roll back first, then reserve"
)


class DatabaseBackend(PlannedBackend[DatabaseVerbs]):
    """A table of reservations in the database of `engine`.

    Uses a small pool of its own beside the engine's, in autocommit, with the engine's way to connect. The
    table is created when first needed (`create=False`: a missing one is a `ConfigurationError`).
    """

    def __init__(
        self,
        engine: Engine,
        prefix: str = "",
        *,
        table: str = DEFAULT_TABLE,
        schema: str | None = None,
        create: bool = True,
    ) -> None:
        kind(engine.dialect)
        if is_private_memory(engine):
            raise ConfigurationError(
                "an in-memory SQLite database is private to its connection, so no other can see reservations in "
                "it: use a file, or configure('memory://')"
            )
        check_prefix(prefix)
        super().__init__(
            DatabaseVerbs(prefix), prefix=prefix, capabilities=Capabilities(durable=True, joinable=True)
        )
        self.table = reservations_table(name=table, schema=schema)
        self.connections = Connections(engine)
        self.execution = Execution(self.connections, self.table)
        self._create = create
        self._blocked_by_caller: Callable[[], bool] | None = None

    @property
    def is_sqlite(self) -> bool:
        """Whether writers of this database exclude each other."""
        return self.connections.dialect.name == "sqlite"

    @property
    def statements(self) -> Statements:
        """The statements for this server."""
        return self.execution.prepared()

    @property
    def verbs(self) -> DatabaseVerbs:
        """The plans, for those who put rows of this table into statements of their own."""
        return self._verbs

    def beside(self, blocks: Callable[[], bool]) -> DatabaseBackend:
        """The same backend, seen beside a caller's transaction: `blocks` tells whether that one holds SQLite's
        write lock, in which case waiting for it would be waiting for ourselves.
        """
        view = copy.copy(self)
        view._blocked_by_caller = blocks
        return view

    def perform(self, step: Any) -> Any:
        if isinstance(step, Pause):
            return time.sleep(step.seconds)
        return self.attempt(lambda: self.execution(step))

    def attempt(self, work: Callable[[], Any]) -> Any:
        """Do the work, making the table first where it is missing."""
        try:
            try:
                return work()
            except NoTable as error:
                if not self._create:
                    raise creation.refuse(self.execution) from error.__cause__
                creation.create(self.execution)
                return work()
        except Contended as error:
            if self._blocked_by_caller is not None and self._blocked_by_caller():
                raise BackendError(OWN_WRITE) from error.failure.__cause__
            raise

    def close(self) -> None:
        self.connections.close()

    def __repr__(self) -> str:
        place = shown(self.connections.url)
        return f"<{type(self).__name__} {self.table.fullname} in {place} prefix={self.prefix!r}>"


def is_private_memory(engine: Engine) -> bool:
    """Whether this is a SQLite database in memory, which no second connection can see."""
    if engine.dialect.name != "sqlite":
        return False
    database = engine.url.database
    return not database or database in (":memory:", "file::memory:") or "mode=memory" in str(engine.url)
