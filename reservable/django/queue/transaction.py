"""Django's transaction, as the one that a row is completed in."""

# Django has no types, and what pyright guesses of its sources is wrong.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import connections
from django.db.transaction import atomic, on_commit
from sqlalchemy import Executable, select

from reservable.django.connections import in_transaction
from reservable.errors import NotSupported
from reservable.leasing.transaction import Caller

if TYPE_CHECKING:
    from reservable.django.queue.desks import ModelDesk


class AtomicCaller(Caller):
    """Raises `NotSupported` where a transaction is open, which would commit later, or not at all."""

    def __init__(self, desk: ModelDesk) -> None:
        self._desk = desk
        self._alias = desk.alias
        if in_transaction(connections[self._alias]):
            raise NotSupported(
                "a transaction is open, and what the lease completes would not be committed with its block: call "
                "lease.transaction() outside atomic()"
            )

    @contextmanager
    def opened(self) -> Iterator[None]:
        with atomic(using=self._alias, durable=True):
            on_commit(self._note, using=self._alias)  # before any of the caller's, which may raise
            yield

    def _note(self) -> None:
        self.is_committed = True

    def changed(self, statement: Executable) -> int:
        return self._desk.in_djangos(lambda connection: connection.execute(statement).rowcount)

    def row(self, fence: Any) -> Any:
        queue = self._desk.queue
        [found] = self._desk.in_djangos(
            lambda connection: connection.execute(select(*queue.pk).where(fence)).all()
        )
        key = queue.read_key(tuple(found))
        return queue.entity._base_manager.using(self._alias).get(queue.identity.among([key]))

    def keeps(self, row: Any) -> bool:
        identity = self._desk.queue.identity
        values = identity.values(row)
        rows = self._desk.queue.entity._base_manager.using(self._alias)
        return None not in values and bool(rows.filter(identity.among([values])).exists())
