"""Reservations in a table of a SQL database: PostgreSQL, MySQL 8, MariaDB 10.6+ or SQLite."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

from sqlalchemy import Engine

from reservable.backends.database import creation
from reservable.backends.database.connections import Connections
from reservable.backends.database.dialects import kind
from reservable.backends.database.failures import NoTable
from reservable.backends.database.schema import DEFAULT_TABLE, reservations_table
from reservable.backends.database.table import TableBackend
from reservable.errors import BackendError, ConfigurationError
from reservable.retrying import Contended

OWN_WRITE = (
    "the SQLite file is locked by this session's own uncommitted write, so no reservation can be written beside "
    "it: commit or roll back first, then reserve"
)


class DatabaseBackend(TableBackend):
    """A table of reservations in the database of `engine`.

    Uses a small pool of its own beside the engine's, in autocommit, with the engine's way to connect. The
    table is created when first needed (`create=False`: a missing one is a `ConfigurationError`).
    `notify` makes every release tell waiters by PostgreSQL's NOTIFY, and `watch` listen for it.
    Raises `ConfigurationError` for an engine that has an asyncio driver or whose database nobody else can see, and
    for `notify` where it cannot be.
    """

    _is_async: ClassVar[bool] = False

    def __init__(
        self,
        engine: Engine,
        prefix: str = "",
        *,
        table: str = DEFAULT_TABLE,
        schema: str | None = None,
        create: bool = True,
        notify: bool = False,
    ) -> None:
        kind(engine.dialect)
        if engine.dialect.is_async is not self._is_async:
            raise ConfigurationError(
                f"{engine.dialect.name}+{engine.dialect.driver} is an asyncio driver: give its engine to "
                "AsyncDatabaseBackend, or an engine with a blocking driver to DatabaseBackend"
            )
        if is_private_memory(engine):
            raise ConfigurationError(
                "an in-memory SQLite database is private to its connection, so no other can see reservations in "
                "it: use a file, or configure('memory://')"
            )
        self.connections = Connections(engine)
        table_ = reservations_table(name=table, schema=schema)
        super().__init__(self.connections, table_, prefix, notify=notify)
        self.creates = create
        self._blocked_by_caller: Callable[[], bool] | None = None
        self._apart: DatabaseBackend | None = None

    def twin(self) -> Any:
        """The backend on the same table for the other colour, by another driver."""
        from reservable.backends.database import engines

        return engines.twin(self, create=self.creates)

    def beside(self, blocks: Callable[[], bool]) -> DatabaseBackend:
        """The same backend, seen beside a caller's transaction: `blocks` tells whether that one holds SQLite's
        write lock, in which case waiting for it would be waiting for ourselves.
        """
        view = copy.copy(self)
        view._apart = self.apart
        view._blocked_by_caller = blocks
        return view

    @property
    def apart(self) -> DatabaseBackend:
        """The backend itself, beside no caller: for threads that must not look at the caller's session."""
        return self._apart or self

    def attempt(self, work: Callable[[], Any]) -> Any:
        try:
            return super().attempt(work)
        except Contended as error:
            if self._blocked_by_caller is not None and self._blocked_by_caller():
                refused = BackendError(OWN_WRITE)
                refused.nothing_done = True
                raise refused from error.failure.__cause__
            raise

    def make_table(self, error: NoTable) -> None:
        if not self.creates:
            raise creation.refuse(self.connections.dialect, self.table) from error.__cause__
        creation.create(self.connections, self.table)


def is_private_memory(engine: Engine) -> bool:
    """Whether this is a SQLite database in memory, which no second connection can see."""
    if engine.dialect.name != "sqlite":
        return False
    database = engine.url.database
    return not database or database in (":memory:", "file::memory:") or "mode=memory" in str(engine.url)
