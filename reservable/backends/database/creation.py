"""Making the table of reservations when it is first needed, in a transaction of its own."""

from __future__ import annotations

from sqlalchemy import Table, inspect
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateTable

from reservable.backends.database.connections import Connections
from reservable.backends.database.failures import core_errors, explained
from reservable.errors import BackendError, ConfigurationError
from reservable.retrying import Signal


def create(connections: Connections, table: Table) -> None:
    """Create the table unless it is there; two processes may do so at once.

    Raises `BackendError` when this user may not create tables, and a `Signal` when asking again can help.
    """
    try:
        with connections.engine.connect() as connection:
            connection.execute(CreateTable(table, if_not_exists=True))
    except core_errors(connections.dialect) as error:
        failure = explained(error, connections.dialect, connections.url)
        if isinstance(failure, Signal):  # an SQLite file that another process is writing, its CREATE perhaps
            raise failure from error
        # PostgreSQL's IF NOT EXISTS still loses the race against a concurrent CREATE with a duplicate in its
        # catalogue; what counts is whether the table is there now.
        if not _is_there(connections, table):
            reason = getattr(error, "orig", error)
            raise BackendError(
                f"{_missing(connections.dialect, table)} and could not be created: {reason}"
            ) from error


def _is_there(connections: Connections, table: Table) -> bool:
    try:
        return inspect(connections.engine).has_table(table.name, schema=table.schema)
    except core_errors(connections.dialect):
        return False


def refuse(dialect: Dialect, table: Table) -> ConfigurationError:
    """The error for a missing table that we were told not to create."""
    return ConfigurationError(_missing(dialect, table))


def _missing(dialect: Dialect, table: Table) -> str:
    ddl = " ".join(str(CreateTable(table).compile(dialect=dialect)).split())
    return (
        f"the table {table.fullname!r} of the reservations is missing: add a migration for it (let Alembic see "
        f"reservable.backends.database.reservations_table(Base.metadata), or run: {ddl})"
    )
