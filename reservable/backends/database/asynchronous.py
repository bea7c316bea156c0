"""The asyncio backend for SQL databases: the blocking one, within SQLAlchemy's greenlets."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from sqlalchemy import Engine, Table
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import greenlet_spawn

from reservable.backends.asynchronous import AsyncPlannedBackend
from reservable.backends.database.backend import DatabaseBackend
from reservable.backends.database.connections import Connections
from reservable.backends.database.schema import DEFAULT_TABLE
from reservable.backends.database.verbs import DatabaseVerbs
from reservable.backends.watching import AsyncWatch
from reservable.errors import ConfigurationError
from reservable.plans import Pause


class Within(DatabaseBackend):
    """A `DatabaseBackend` on an asyncio driver, for blocking code that SQLAlchemy runs in a greenlet."""

    _is_async: ClassVar[bool] = True

    def __init__(self, engine: Engine, prefix: str, **options: Any) -> None:
        super().__init__(engine, prefix, **options)
        # To be told of a release would have to be awaited: AsyncDatabaseBackend.watch.
        self.capabilities = replace(self.capabilities, tells=False)

    def pause(self, seconds: float) -> None:
        """Wait without blocking the event loop."""
        self.connections.pause(seconds)


class AsyncDatabaseBackend(AsyncPlannedBackend[DatabaseVerbs]):
    """`DatabaseBackend` for asyncio: the same table, statements and plans.

    `engine` is an `AsyncEngine`, or the `sync_engine` of one. The connections are our own, in each event loop
    those of that loop, and closed with it, so one backend serves several loops, one after the other or in threads.

    Raises `ConfigurationError` for an engine with a blocking driver, and what `DatabaseBackend` raises.
    """

    def __init__(
        self,
        engine: AsyncEngine | Engine,
        prefix: str = "",
        *,
        table: str = DEFAULT_TABLE,
        schema: str | None = None,
        create: bool = True,
        notify: bool = False,
    ) -> None:
        inner = engine.sync_engine if isinstance(engine, AsyncEngine) else engine
        if not inner.dialect.is_async:
            raise ConfigurationError(
                f"{inner.dialect.name}+{inner.dialect.driver} is a blocking driver: give AsyncDatabaseBackend an "
                "AsyncEngine, as create_async_engine makes it for asyncpg, psycopg, aiomysql, asyncmy or aiosqlite"
            )
        within = Within(inner, prefix, table=table, schema=schema, create=create, notify=notify)
        super().__init__(
            within.verbs, prefix=within.prefix, capabilities=replace(within.capabilities, tells=notify)
        )
        self._apart: AsyncDatabaseBackend | None = None
        self.within: DatabaseBackend = within
        """What does the work, for blocking code that already runs within one of SQLAlchemy's greenlets."""

    @property
    def table(self) -> Table:
        return self.within.table

    @property
    def notify(self) -> bool:
        return self.within.notify

    @property
    def connections(self) -> Connections:
        return self.within.connections

    @property
    def verbs(self) -> DatabaseVerbs:
        """The plans, for those who put rows of this table into statements of their own."""
        return self._verbs

    @property
    def is_sqlite(self) -> bool:
        """Whether writers of this database exclude each other."""
        return self.within.is_sqlite

    def twin(self) -> Any:
        """The backend on the same table for blocking code, by another driver."""
        from reservable.backends.database import engines

        return engines.twin(self, create=self.within.creates)

    def beside(self, blocks: Callable[[], bool]) -> AsyncDatabaseBackend:
        """`DatabaseBackend.beside`: `blocks` tells whether the caller itself holds SQLite's write lock."""
        view = copy.copy(self)
        view._apart = self.apart
        view.within = self.within.beside(blocks)
        return view

    @property
    def apart(self) -> AsyncDatabaseBackend:
        """The backend itself, beside no caller: for threads that must not look at the caller's session."""
        return self._apart or self

    async def _perform(self, step: Any) -> Any:
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        return await greenlet_spawn(self.within.perform, step)

    def watch(self, name: str) -> AsyncWatch:
        """As `DatabaseBackend.watch`: `async with backend.watch(name) as watch: await watch.pause(seconds)`."""
        return self.within.source.async_watch(self.prefix + name)

    async def close(self) -> None:
        """Close the connections of this event loop now, and those of other loops as soon as they come to it."""
        await greenlet_spawn(self.within.close)

    def __repr__(self) -> str:
        return self.within.described(type(self).__name__)
