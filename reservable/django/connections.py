"""Lends Django's own connections to the statements, and others where a transaction is open on those."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connections
from sqlalchemy import URL
from sqlalchemy.engine import Dialect

from reservable.backends.database.dialects import Trouble, trouble
from reservable.backends.database.failures import core_errors, driver_errors, shown, translated
from reservable.backends.database.preparing import prepare
from reservable.django.companions import BUSY, close_all, companion
from reservable.django.dialects import bare_connection, engine_of, introduced
from reservable.django.locking import keeps_out
from reservable.errors import BackendError

T = TypeVar("T")

SHORT = 20
"""Milliseconds that SQLite waits for its lock on Django's own connection while we use it."""

OWN_TRANSACTION = (
    "the SQLite file is locked by the open transaction of this thread, so nothing can be written beside it: reserve or "
    "claim before the atomic block or after it (reservations can have a database of their own by a router)"
)


class DjangoConnections:
    """Connections to one of Django's databases, in autocommit.

    Outside transactions that is Django's own connection of the thread. Inside one it is a companion of it, so that a
    reservation is there for others at once, and whatever goes wrong does no harm to the transaction. The transaction
    that a `TestCase` wraps around a test is no such transaction: what is reserved in it goes with it.
    """

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self._apart = False
        self._engine = engine_of(connections[alias])
        self._errors = driver_errors(self._engine.dialect)
        self._introduced = False

    @property
    def dialect(self) -> Dialect:
        return self._engine.dialect

    @property
    def url(self) -> URL:
        return self._engine.url

    def lend(self, work: Callable[[Any], T]) -> T:
        return self.lend_wrapped(lambda used: work(used.connection))

    def lend_wrapped(self, work: Callable[[Any], T]) -> T:
        """As `lend`; what is lent is Django's wrapper around a driver's connection."""
        own = connections[self.alias]
        try:
            if not self._introduced:
                introduced(self._engine, own)
                self._introduced = True
            beside = self._apart or in_transaction(own)
            used = companion(own, self.dialect) if beside else own
            used.close_if_health_check_failed()
            used.ensure_connection()
        except (Error, ImproperlyConfigured, *core_errors(self.dialect), *self._errors) as error:
            raise BackendError(f"cannot connect to the database {shown(self.url)}: {error}") from error
        try:
            with self._impatient(used.connection):
                return work(used)
        except self._errors as error:
            found = trouble(self.dialect, error, used.connection, None)
            if found is Trouble.LOST:
                _discard(used)
            if found is Trouble.CONTENDED and self.dialect.name == "sqlite" and beside and not self._apart:
                [journal] = used.connection.execute("PRAGMA journal_mode").fetchone()
                if keeps_out(own, journal):
                    raise BackendError(OWN_TRANSACTION) from error
            raise translated(found, error, self.url) from error
        except BaseException:
            # Interrupted in the middle of an answer: the next one must not read it.
            _discard(used)
            raise
        finally:
            if self._apart:  # nobody tells a thread of ours when its connection has to be closed
                _discard(used)

    @contextmanager
    def _impatient(self, driver: Any) -> Iterator[None]:
        """SQLite waits for its lock unfairly, for as long as it was told: rather ask again, with random pauses."""
        if self.dialect.name != "sqlite":
            yield
            return
        (patience,) = driver.execute("PRAGMA busy_timeout").fetchone()
        if patience <= BUSY:
            yield
            return
        driver.execute(f"PRAGMA busy_timeout = {SHORT}")
        try:
            yield
        finally:
            driver.execute(f"PRAGMA busy_timeout = {patience}")

    def never_djangos_own(self) -> DjangoConnections:
        """The same by companions alone, for threads that are not Django's."""
        made = copy.copy(self)
        made._apart = True
        return made

    def apart(self) -> Any:
        driver = bare_connection(connections[self.alias])
        prepare(self.dialect, driver)
        return driver

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)  # looked up late, for gevent may have replaced it

    def close(self) -> None:
        """Close the companions of this thread; Django's own connections are Django's to close."""
        close_all()


def in_transaction(connection: Any) -> bool:
    """Whether what is written on Django's connection waits for somebody's commit; connects it if need be."""
    if connection.in_atomic_block:
        return not in_testcase(connection)
    connection.ensure_connection()
    return not connection.autocommit


def in_testcase(connection: Any) -> bool:
    """Whether the transaction is that of a test, which is the world for what happens in it."""
    return any(getattr(block, "_from_testcase", False) for block in connection.atomic_blocks)


def _discard(used: Any) -> None:
    if not used.in_atomic_block:  # a test's: Django has to see by itself that it is broken
        with suppress(Error):
            used.close()
        used.connection = None
