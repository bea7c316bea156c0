"""The verbs over one table of reservations, whoever lends the connections."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

from sqlalchemy import Table

from reservable.backends.base import Capabilities, PlannedBackend
from reservable.backends.database.dialects import server
from reservable.backends.database.execution import Execution
from reservable.backends.database.failures import NoTable, shown
from reservable.backends.database.lending import Lender
from reservable.backends.database.notifying import channel_of, check_notify
from reservable.backends.database.statements import Statements
from reservable.backends.database.verbs import DatabaseVerbs
from reservable.backends.database.watches import Source
from reservable.backends.watching import Watch
from reservable.errors import NotSupported
from reservable.names import check_prefix
from reservable.plans import Pause
from reservable.retrying import Contended


class TableBackend(PlannedBackend[DatabaseVerbs]):
    """One table of reservations, and connections to its database that are lent in autocommit.

    Raises `ConfigurationError` for a prefix that cannot be, and for `notify` where it cannot be.
    """

    def __init__(self, connections: Lender, table: Table, prefix: str, *, notify: bool) -> None:
        check_prefix(prefix)
        if notify:
            check_notify(connections.dialect)
        self.notify = notify
        self.table = table
        channel = partial(channel_of, table.fullname)
        super().__init__(
            DatabaseVerbs(prefix, channel if notify else None),
            prefix=prefix,
            capabilities=Capabilities(durable=True, joinable=True, tells=notify),
        )
        self.lender = connections
        self.execution = Execution(connections, table, notify=notify)
        self._source = Source(self.execution, channel) if notify else None

    @property
    def is_sqlite(self) -> bool:
        """Whether writers of this database exclude each other."""
        return self.lender.dialect.name == "sqlite"

    @property
    def statements(self) -> Statements:
        """The statements for this server."""
        return self.execution.prepared()

    @property
    def verbs(self) -> DatabaseVerbs:
        """The plans, for those who put rows of this table into statements of their own."""
        return self._verbs

    def perform(self, step: Any) -> Any:
        if isinstance(step, Pause):
            return self.lender.pause(step.seconds)
        return self.attempt(lambda: self.execution(step))

    def attempt(self, work: Callable[[], Any]) -> Any:
        """Do the work, making the table first where it is missing."""
        try:
            return work()
        except NoTable as error:
            self.make_table(error)
        try:
            return work()
        except NoTable as error:
            # SQLite has not seen the new table yet where somebody's lock kept it from looking.
            raise Contended(error) from error.__cause__

    @abstractmethod
    def make_table(self, error: NoTable) -> None:
        """Create the table that is missing, or raise `ConfigurationError`."""

    def watch(self, name: str) -> Watch:
        """Wait for the name: `with backend.watch(name) as watch: watch.pause(seconds)`.

        A pause ends when the name was released or its holder's time is over, and after `seconds` at most. Each
        watch has a connection of its own outside the pool while it is open. Behind a pooler such as PgBouncer, which
        would keep the news to itself, it is a short sleep. Raises `NotSupported` without `notify`.
        """
        return self.source.watch(self.prefix + name)

    @property
    def source(self) -> Source:
        """Where the watches come from; `NotSupported` without `notify`."""
        if self._source is None:
            raise NotSupported(
                "this database does not tell waiters of a release: make the backend with notify=True"
            )
        return self._source

    def server_version(self) -> str:
        """The server and its version, as "PostgreSQL 15.8". Raises `BackendError`."""
        self.lender.lend(lambda _: None)
        return server(self.lender.dialect)

    def close(self) -> None:
        self.lender.close()

    def described(self, name: str) -> str:
        """A line about this store for people, without its password; `name` is what they know the backend by."""
        return f"<{name} {self.table.fullname} in {shown(self.lender.url)} prefix={self.prefix!r}>"

    def __repr__(self) -> str:
        return self.described(type(self).__name__)
