"""Pools of the library's own beside an engine's: for blocking code one a process, for asyncio one an event loop."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from sqlalchemy import Engine, event
from sqlalchemy.engine import Dialect
from sqlalchemy.pool import AsyncAdaptedQueuePool, NullPool, Pool, QueuePool
from sqlalchemy.util import await_only, greenlet_spawn

from reservable.backends.database.burial import bury
from reservable.backends.database.introductions import Introduction
from reservable.backends.database.preparing import prepare

KEPT = 4
"""Connections that stay in hand between statements: taking one from the pool costs as much as a statement of
SQLite's. Fewer than the pool has, so that the pool always has one for whoever asks it."""


class OwnPool:
    """A small pool with the way to connect of the user's pool `source`, none of its connections, in autocommit."""

    queue: type[QueuePool] = QueuePool

    def __init__(self, source: Pool, dialect: Dialect, url: Any) -> None:
        self._dialect = dialect
        # recreate() keeps how the user connects (creator, arguments, listeners) and none of the connections.
        self._source = source.recreate()
        self._kept: list[Any] = []
        # Where the user's pool keeps no connection, or none that is old, neither do we.
        self._keeps = not isinstance(source, NullPool) and getattr(source, "_recycle", -1) < 0
        self.engine = Engine(self._pool(), dialect, url, hide_parameters=True)  # tokens are parameters

    def _pool(self) -> Pool:
        source = self._source
        if source.dispatch.checkout:
            # Such a listener may say whose rows a connection sees: then it is asked every time.
            event.listen(source, "connect", lambda driver, _: prepare(self._dialect, driver))
            self._keeps = False
            return source
        if isinstance(source, NullPool):
            return NullPool(self._connect, reset_on_return=None, dialect=self._dialect)
        return self.queue(
            self._connect,
            reset_on_return=None,
            dialect=self._dialect,
            use_lifo=True,
            recycle=getattr(source, "_recycle", -1),
        )

    def _connect(self) -> Any:
        connection = self._source.connect()
        connection.detach()
        driver: Any = connection.dbapi_connection
        try:
            prepare(self._dialect, driver)
        except BaseException:
            self._dialect.do_terminate(driver)
            raise
        return driver

    def apart(self) -> Any:
        """A driver's connection that this pool does not count, and whose taker closes it."""
        return self._connect()

    def take(self) -> Any:
        """A connection that is nobody else's until it is given back."""
        try:
            return self._kept.pop()
        except IndexError:
            return self.engine.raw_connection()

    def give_back(self, connection: Any) -> None:
        if self._keeps and len(self._kept) < KEPT:
            self._kept.append(connection)
        else:
            connection.close()

    def discard(self, connection: Any, error: BaseException) -> None:
        """Close a connection that must not be used again after this error."""
        connection.invalidate(error)
        connection.close()

    def dispose(self) -> None:
        """Close what is idle; connections in use close when they come back."""
        kept, self._kept = self._kept, []
        for connection in kept:
            connection.close()
        self.engine.dispose()


class PerProcess:
    """The pool of this process: a forked child has one of its own."""

    def __init__(self, make: Callable[[], OwnPool]) -> None:
        self._make = make
        self._pool = make()
        self._pid = os.getpid()

    def get(self) -> OwnPool:
        if self._pid != os.getpid():
            _PARENTS.append(self._pool)
            self._pid = os.getpid()
            self._pool = self._make()
        return self._pool


_PARENTS: list[Any] = []
"""Pools of a parent process. Kept so that their connections are never closed by the child: both share a socket."""


class LoopPool(OwnPool):
    """The pool of one event loop, used within SQLAlchemy's greenlets; once closed it keeps no connection."""

    queue = AsyncAdaptedQueuePool

    def __init__(self, source: Pool, dialect: Dialect, url: Any, introduction: Introduction) -> None:
        self._introduction = introduction
        self._drivers: WeakSet[Any] = WeakSet()
        self._closed = False
        super().__init__(source, dialect, url)

    def _pool(self) -> Pool:
        pool = super()._pool()
        event.listen(pool, "connect", lambda driver, _: self._drivers.add(driver.driver_connection))
        event.listen(pool, "close", lambda driver, _: self._hasten(driver))
        event.listen(pool, "checkin", self._checked_in)
        return pool

    def _connect(self) -> Any:
        with self._introduction.made():
            try:
                return super()._connect()
            except (OSError, EOFError) as error:  # asyncpg leaves such errors of the loop's as they are
                failure: Any = self._dialect.dbapi.OperationalError  # type: ignore[union-attr]
                raise failure(f"cannot connect: {error!r}") from error

    def apart(self) -> Any:
        driver = super().apart()
        self._drivers.add(driver.driver_connection)
        return driver

    def _hasten(self, driver: Any) -> None:
        """Close without the server's goodbye, for which asyncpg waits without end, and a server may be mute."""
        terminate = getattr(driver.driver_connection, "terminate", None)
        if self._closed and terminate is not None:
            terminate()

    def _checked_in(self, driver: Any, record: Any) -> None:
        if self._closed and driver is not None:
            record.invalidate()

    def discard(self, connection: Any, error: BaseException) -> None:
        # A cursor that its frames hold keeps a statement of SQLite's open, and so its lock, beyond the end.
        traceback.clear_frames(error.__traceback__)
        super().discard(connection, error)

    def dispose(self) -> None:
        while self._kept:  # and still, if this is cancelled: for `bury`
            self._kept.pop().close()
        self.engine.pool.dispose()
        await_only(asyncio.sleep(0))  # transports tell of their end in the loop's next turn

    async def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back; in this pool's own loop."""
        self._closed, self._keeps = True, False
        try:
            await greenlet_spawn(self.dispose)
        except BaseException:
            self.bury()
            raise

    def bury(self) -> None:
        """Close everything from outside the loop, which is closed or stands still."""
        self._closed, self._keeps = True, False
        drivers = [*self._drivers]  # which go when nobody holds them, and that may be any moment now
        while self._kept:
            # "Event loop is closed", to whoever still waits there for a connection.
            with suppress(RuntimeError):
                self._kept.pop().detach()
        for driver in drivers:
            bury(driver, self._dialect.driver)
