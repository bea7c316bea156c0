"""Connections of the library's own to the user's database: few, short, in autocommit.

Never the caller's connection: its transaction may be old, may be rolled back, may be in another isolation
level, and is none of our business. Never the caller's pool either: workers that each hold one connection
and wait for a second from the same full pool wait for ever.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool, Pool, QueuePool

from reservable.backends.database.dialects import Trouble, trouble
from reservable.backends.database.failures import driver_error, shown, translated
from reservable.errors import BackendError
from reservable.retrying import PATIENCE

T = TypeVar("T")

_inherited: list[Any] = []
"""Pools of a parent process. Kept so that their connections are never closed by the child: both share a socket."""


KEPT = 4
"""Connections that stay in hand between statements: taking one from the pool costs as much as a statement of
SQLite's. Fewer than the pool has, so that the pool always has one for whoever asks it."""


class Connections:
    """The library's own small pool beside an engine, with the engine's own way to connect."""

    def __init__(self, engine: Engine) -> None:
        self.dialect = engine.dialect
        self.url = engine.url
        self._source = engine.pool
        self._pid = os.getpid()
        self._engine = self._make()
        self._kept: list[Any] = []
        self.remembered: OrderedDict[Any, Any] = OrderedDict()
        """Statements compiled for this database, by what makes them differ; the latest used last."""

    @property
    def engine(self) -> Engine:
        """An engine on this pool; after a fork, one on a fresh pool."""
        if self._pid != os.getpid():
            _inherited.append((self._engine.pool, self._kept))
            self._kept = []
            self._pid = os.getpid()
            self._engine = self._make()
        return self._engine

    def lend(self, work: Callable[[Any], T]) -> T:
        """What the work does with a driver's connection, in autocommit; a broken one is thrown away.

        Raises `BackendError`, or a signal where asking again can help.
        """
        try:
            connection = self._take()
        except (SQLAlchemyError, driver_error(self.dialect)) as error:
            raise BackendError(f"cannot connect to the database {shown(self.url)}") from error
        try:
            answer = work(connection)
        except driver_error(self.dialect) as error:
            found = trouble(self.dialect, error, connection.dbapi_connection, None)
            if found is Trouble.LOST:
                connection.invalidate(error)
                connection.close()
                self.close()  # the others may be broken, too
            else:
                self._give_back(connection)
            raise translated(found, error, self.url) from error
        except BaseException:
            connection.invalidate()  # interrupted in the middle of an answer: the next user must not read it
            connection.close()
            raise
        self._give_back(connection)
        return answer

    def _take(self) -> Any:
        engine = self.engine
        try:
            return self._kept.pop()
        except IndexError:
            return engine.raw_connection()

    def _give_back(self, connection: Any) -> None:
        if len(self._kept) < KEPT and self._keeps:
            self._kept.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close what is idle; connections in use close when they come back."""
        engine = self.engine  # in a forked child, first let go of what is the parent's
        kept, self._kept = self._kept, []
        for connection in kept:
            connection.close()
        engine.dispose()

    def _make(self) -> Engine:
        # recreate() keeps how the user connects (creator, arguments, listeners) and none of the connections.
        source = self._source.recreate()

        def connect() -> Any:
            connection = source.connect()
            connection.detach()
            driver = connection.dbapi_connection
            self._prepare(driver)
            return driver

        if source.dispatch.checkout:
            # Such a listener may say whose rows a connection sees: then it is asked every time.
            event.listen(source, "connect", lambda driver, _: self._prepare(driver))
            self._keeps = False
            return Engine(source, self.dialect, self.url, hide_parameters=True)
        pool: Pool
        # Where the user's pool keeps no connection, or none that is old, neither do we.
        self._keeps = not isinstance(source, NullPool) and getattr(source, "_recycle", -1) < 0
        if isinstance(source, NullPool):
            pool = NullPool(connect, reset_on_return=None, dialect=self.dialect)
        else:
            pool = QueuePool(
                connect,
                reset_on_return=None,
                dialect=self.dialect,
                use_lifo=True,
                recycle=getattr(source, "_recycle", -1),
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
