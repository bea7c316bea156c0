"""Connections of the library's own to the user's database: few, short, in autocommit.

Never the caller's connection: its transaction may be old, may be rolled back, may be in another isolation
level, and is none of our business. Never the caller's pool either: workers that each hold one connection
and wait for a second from the same full pool wait for ever.
"""

from __future__ import annotations

import os
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.pool import NullPool, Pool, QueuePool

from reservable.retrying import PATIENCE

_inherited: list[Pool] = []
"""Pools of a parent process. Kept so that their connections are never closed by the child: both share a socket."""


class Connections:
    """The library's own small pool beside an engine, with the engine's own way to connect."""

    def __init__(self, engine: Engine) -> None:
        self.dialect = engine.dialect
        self.url = engine.url
        self._source = engine.pool
        self._pid = os.getpid()
        self._engine = self._make()

    @property
    def engine(self) -> Engine:
        """An engine on this pool; after a fork, one on a fresh pool."""
        if self._pid != os.getpid():
            _inherited.append(self._engine.pool)
            self._pid = os.getpid()
            self._engine = self._make()
        return self._engine

    def _make(self) -> Engine:
        # recreate() keeps how the user connects (creator, arguments, listeners) and none of the connections.
        source = self._source.recreate()

        def connect() -> Any:
            connection = source.connect()
            connection.detach()
            driver = connection.dbapi_connection
            self._prepare(driver)
            return driver

        pool: Pool
        if isinstance(source, NullPool):
            pool = NullPool(connect, reset_on_return=None, dialect=self.dialect)
        else:
            pool = QueuePool(
                connect, reset_on_return=None, dialect=self.dialect, use_lifo=True, recycle=getattr(source, "_recycle", -1)
            )
        return Engine(pool, self.dialect, self.url, hide_parameters=True)  # tokens are parameters

    def _prepare(self, driver: Any) -> None:
        """Autocommit, and no wait that outlasts our patience."""
        self.dialect.set_isolation_level(driver, "AUTOCOMMIT")
        cursor = driver.cursor()
        try:
            for statement in self._settings():
                cursor.execute(statement)
        finally:
            cursor.close()

    def _settings(self) -> list[str]:
        if self.dialect.name == "postgresql":
            return []  # a setting would stay behind in a pooler's connection: see `Statements`
        if self.dialect.name == "sqlite":
            return ["PRAGMA busy_timeout = 20"]  # short: longer waits are ours, with random pauses
        return [
            f"SET SESSION innodb_lock_wait_timeout = {PATIENCE:.0f}",
            # A listener of the user's may have stopped this session's clock (SET TIMESTAMP), as replaying tools do.
            "SET SESSION timestamp = DEFAULT",
            # An INSERT ... SELECT locks what it reads at REPEATABLE READ.
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        ]

    def close(self) -> None:
        """Close what is idle; connections in use close when they come back."""
        self.engine.dispose()


