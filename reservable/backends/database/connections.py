"""Connections of the library's own to the user's database: few, short, in autocommit.

Never the caller's connection: its transaction may be old, may be rolled back, may be in another isolation
level, and is none of our business. Never the caller's pool either: workers that each hold one connection
and wait for a second from the same full pool wait for ever.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Engine
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import MissingGreenlet
from sqlalchemy.util import await_only

from reservable.backends.database.dialects import Trouble, trouble
from reservable.backends.database.failures import core_errors, driver_errors, shown, translated
from reservable.backends.database.introductions import Introduction
from reservable.backends.database.pools import LoopPool, OwnPool, PerProcess
from reservable.backends.loops import PerLoop
from reservable.errors import BackendError

T = TypeVar("T")


class Connections:
    """The library's own connections beside an engine, made in the engine's own way.

    Of an engine with an asyncio driver they are for blocking code within SQLAlchemy's greenlets, and each event
    loop has its own.
    """

    def __init__(self, engine: Engine) -> None:
        self.dialect = dialect = engine.dialect
        self.url = url = engine.url
        self._errors = driver_errors(dialect)
        self.remembered: OrderedDict[Any, Any] = OrderedDict()
        """Statements compiled for this database, by what makes them differ; the latest used last."""
        source = engine.pool
        self._pools: PerProcess | PerLoop[LoopPool]
        if dialect.is_async:
            introduction = Introduction()
            self._pools = PerLoop(lambda: LoopPool(source, dialect, url, introduction))
        else:
            self._pools = PerProcess(lambda: OwnPool(source, dialect, url))

    @property
    def engine(self) -> Engine:
        """An engine on this pool; after a fork, or in another event loop, one on another pool."""
        return self._pools.get().engine

    def lend(self, work: Callable[[Any], T]) -> T:
        """What the work does with a driver's connection, in autocommit; a broken one is thrown away.

        Raises `BackendError`, or a signal where asking again can help.
        """
        pool = self._pools.get()
        try:
            connection = pool.take()
        except (*core_errors(self.dialect), *self._errors) as error:
            raise BackendError(f"cannot connect to the database {shown(self.url)}") from error
        except TypeError as error:  # of settings that the driver does not know
            raise BackendError(f"cannot connect to the database {shown(self.url)}: {error}") from error
        try:
            answer = work(connection)
        except self._errors as error:
            found = trouble(self.dialect, error, connection.dbapi_connection, None)
            if found is Trouble.LOST:
                pool.discard(connection, error)
                self.close()  # the others may be broken, too
            else:
                pool.give_back(connection)
            raise translated(found, error, self.url) from error
        except BaseException as error:
            # Interrupted in the middle of an answer: the next one must not read it.
            pool.discard(connection, error)
            raise
        pool.give_back(connection)
        return answer

    def apart(self) -> Any:
        """A driver's connection in autocommit outside the pool, whose taker closes it; raises the driver's errors."""
        return self._pools.get().apart()

    def pause(self, seconds: float) -> None:
        """Do nothing for a while."""
        pause(self.dialect, seconds)

    def close(self) -> None:
        """Close what is idle; connections in use close when they come back."""
        pools = self._pools
        if isinstance(pools, PerProcess):
            pools.get().dispose()  # in a forked child, of a pool of its own: the other is its parent's
            return
        try:
            await_only(pools.close())
        except MissingGreenlet:  # nothing can be awaited here, so each loop is told
            pools.give_up()


def pause(dialect: Dialect, seconds: float) -> None:
    """Do nothing for a while; with an asyncio driver, the event loop goes on."""
    if dialect.is_async:
        await_only(asyncio.sleep(seconds))
    else:
        time.sleep(seconds)  # looked up late, for gevent may have replaced it
