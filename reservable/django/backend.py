"""Reservations in the table that the migration of this app makes, by Django's own connections."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from django.db import DEFAULT_DB_ALIAS

from reservable.backends.database.failures import NoTable
from reservable.backends.database.schema import DEFAULT_TABLE, reservations_table
from reservable.backends.database.table import TableBackend
from reservable.django.blocking import must_be_blocking
from reservable.django.connections import DjangoConnections
from reservable.errors import ConfigurationError

if TYPE_CHECKING:
    from reservable.django.asynchronous import AsyncDjangoBackend


class DjangoBackend(TableBackend):
    """The table of reservations in the database `alias` of DATABASES.

    It never makes the table: a missing one is a `ConfigurationError`. `notify` makes every release tell waiters by
    PostgreSQL's NOTIFY. Raises `ConfigurationError` for `notify` where it cannot be, `NotSupported` for a database
    or driver that it does not know, and Django's own `SynchronousOnlyOperation` where an event loop runs.
    """

    def __init__(
        self,
        alias: str = DEFAULT_DB_ALIAS,
        prefix: str = "",
        *,
        table: str = DEFAULT_TABLE,
        notify: bool = False,
    ) -> None:
        self.connections = DjangoConnections(alias)
        super().__init__(self.connections, reservations_table(name=table), prefix, notify=notify)
        self.alias = alias
        self._kept_alive_by: DjangoBackend | None = None

    def twin(self) -> AsyncDjangoBackend:
        """The same reservations for asyncio."""
        from reservable.django.asynchronous import AsyncDjangoBackend

        return AsyncDjangoBackend(self)

    @property
    def apart(self) -> DjangoBackend:
        """The same table by connections that are never Django's own: for threads that are not Django's."""
        if self._kept_alive_by is None:
            made = copy.copy(self)
            made.lender = self.connections.never_djangos_own()
            made.execution = copy.copy(self.execution)
            made.execution.connections = made.lender
            self._kept_alive_by = made._kept_alive_by = made
        return self._kept_alive_by

    def must_be_blocking(self) -> None:
        """Raises Django's `SynchronousOnlyOperation` where an event loop runs."""
        must_be_blocking()

    def make_table(self, error: NoTable) -> None:
        database = "" if self.alias == DEFAULT_DB_ALIAS else f" --database={self.alias}"
        raise ConfigurationError(
            f"the table {self.table.fullname!r} of the reservations is missing in the database {self.alias!r}: run "
            f"manage.py migrate{database} with 'reservable.django' in INSTALLED_APPS"
        ) from error.__cause__

    def described(self, name: str) -> str:
        return f"<{name} {self.table.fullname} in {self.alias!r} prefix={self.prefix!r}>"
