"""Desks on Django's databases: on Django's own connections, or on companions of them beside open transactions."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import Error, connections, router
from sqlalchemy import Connection, Engine, NullPool
from sqlalchemy.exc import DBAPIError

from reservable.backends.database.dialects import check_version
from reservable.backends.database.repeating import steadily_told
from reservable.django.blocking import must_be_blocking
from reservable.django.connections import DjangoConnections, in_testcase
from reservable.django.homes import is_in_memory
from reservable.django.locking import witness_of
from reservable.django.queue.guard import remember
from reservable.django.queue.queues import ModelQueue, queue_of
from reservable.django.queue.transaction import AtomicCaller
from reservable.errors import BackendError, NotSupported
from reservable.leasing.asking import BEGIN, Words
from reservable.leasing.desk import Desk
from reservable.leasing.parameters import Held
from reservable.leasing.transaction import transaction

T = TypeVar("T")

_IN_A_TEST = Words(
    "SAVEPOINT reservable_queue",
    "RELEASE SAVEPOINT reservable_queue",
    "ROLLBACK TO SAVEPOINT reservable_queue",
)
"""The transaction of a `TestCase` is the world for what happens in it."""


class Lent:
    """A driver's connection that SQLAlchemy may use, and neither end nor close."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    def close(self) -> None:
        """Nothing: it is Django's."""

    commit = rollback = close


class ModelDesk(Desk):
    """One queue in one of Django's databases."""

    queue: ModelQueue

    def __init__(self, queue: ModelQueue) -> None:
        self._djangos = DjangoConnections(queue.alias)
        super().__init__(queue, self._djangos.dialect)
        self.connections = self._djangos
        self.alias = queue.alias
        self._here = threading.local()
        lend: Any = lambda: Lent(self._here.driver)  # noqa: E731 - its type is no driver's
        pool = NullPool(lend, dialect=self.dialect, reset_on_return=None)
        self._engine = Engine(pool, self.dialect, self._djangos.url)
        self._checked = False
        self._kept_alive_by: ModelDesk | None = None

    @property
    def in_memory(self) -> bool:  # type: ignore[override]
        return is_in_memory(connections[self.alias])

    @property
    def can_beat(self) -> bool:
        return not self.in_memory and not in_testcase(connections[self.alias])

    def must_be_blocking(self) -> None:
        must_be_blocking()

    @property
    def apart(self) -> ModelDesk:
        """The same on connections that are never Django's own: for threads that are not Django's."""
        if self._kept_alive_by is None:
            made = copy.copy(self)
            made._djangos = made.connections = self._djangos.never_djangos_own()
            self._kept_alive_by = made._kept_alive_by = made
        return self._kept_alive_by

    def once(self, work: Callable[[Connection], T], *, whole: bool) -> T:
        own = connections[self.alias]
        if self.in_memory and own.in_atomic_block and not in_testcase(own):
            raise BackendError(
                "this database is in memory, with one connection for all, and a transaction is open on it: leave the "
                "atomic block first"
            )

        def on(used: Any) -> T:
            words = _IN_A_TEST if used.in_atomic_block else BEGIN[self.kind]

            def worked(connection: Connection) -> T:
                return self.in_words(connection, work, words) if whole else work(connection)

            with self._standing_in(used), driver_errors():
                return self.on_driver(used.connection, worked)

        return self._djangos.lend_wrapped(on)

    def on_driver(self, driver: Any, work: Callable[[Connection], T]) -> T:
        """What the work returns on a driver's connection, in whatever transaction that is; raises SQLAlchemy's errors."""
        if not self._checked:
            check_version(self.dialect)
            self._checked = True
        before = getattr(self._here, "driver", None)
        self._here.driver = driver
        try:
            with self._engine.connect() as connection:
                return work(connection)
        finally:
            self._here.driver = before

    def beside(self, work: Callable[[], T]) -> T:
        """What the work returns, whose queries are Django's, beside a transaction that is open; repeated if need be."""

        def on(used: Any) -> T:
            with self._standing_in(used), driver_errors():
                return work()

        return steadily_told(lambda: self._djangos.lend_wrapped(on), self.dialect).answer

    def in_djangos(self, work: Callable[[Connection], T]) -> T:
        """What the work returns in Django's own transaction; raises Django's errors."""
        own = connections[self.alias]
        own.validate_no_broken_transaction()
        own.close_if_health_check_failed()
        own.ensure_connection()
        if own.vendor == "sqlite":
            witness_of(own).note(writes=True)
        with own.wrap_database_errors, driver_errors():
            return self.on_driver(own.connection, work)

    @contextmanager
    def _standing_in(self, used: Any) -> Iterator[None]:
        """Have Django's queries use the connection that was lent, in this thread alone."""
        own = connections[self.alias]
        connections[self.alias] = used
        try:
            yield
        finally:
            connections[self.alias] = own

    def load(self, connection: Connection, held: Sequence[Held]) -> list[Any]:
        identity = self.queue.identity
        keys = [(self.queue.read_key(pk), token) for pk, token in held]
        tokens = {self.queue.text(pk): token for pk, token in keys}
        rows = self.queue.entity._base_manager.using(self.alias)
        found = rows.filter(identity.among([pk for pk, _ in keys]))
        return [row for row in found if tokens[self.queue.text(identity.values(row))] == row.lease_token]

    def show(self, row: Any, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            setattr(row, name, value)
        remember(row)

    def transaction(self, lease: Any, session: Any) -> AbstractContextManager[Any]:
        if lease.is_awaited:
            raise NotSupported(
                "Django has no transactions for asyncio, where other tasks would write in the middle of this one: claim "
                "and write in a function for blocking code, by sync_to_async"
            )
        if session is not None:
            raise NotSupported(
                f"Django's transactions need no session: write lease.transaction(), not {session!r}"
            )
        return transaction(lease, self, AtomicCaller(self))

    def spawned(self, work: Callable[..., T], *arguments: Any) -> Coroutine[Any, Any, T]:
        return sync_to_async(work)(*arguments)


@contextmanager
def driver_errors() -> Iterator[None]:
    """Raises the driver's errors, which SQLAlchemy and Django have wrapped in theirs."""
    try:
        yield
    except DBAPIError as error:
        if isinstance(error.orig, Exception):
            raise error.orig from error
        raise
    except Error as error:
        if isinstance(error.__cause__, Exception):
            raise error.__cause__ from error
        raise


_desks: dict[ModelQueue, ModelDesk] = {}


def desk_of(model: Any, alias: str | None = None) -> ModelDesk:
    """The desk of the database that the model's rows are written to.

    Raises `NotSupported` for a database or driver that it does not know, and Django's `SynchronousOnlyOperation`
    where an event loop runs.
    """
    must_be_blocking()
    queue = queue_of(model, alias or router.db_for_write(model))
    if queue not in _desks:
        _desks[queue] = ModelDesk(queue)
    return _desks[queue]
