"""Making the table of reservations when it is first needed, in a transaction of its own."""

from __future__ import annotations

from sqlalchemy import inspect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateTable

from reservable.backends.database.execution import Execution
from reservable.backends.database.failures import explained
from reservable.errors import BackendError, ConfigurationError
from reservable.retrying import Signal


def create(execution: Execution) -> None:
    """Create the table unless it is there; two processes may do so at once.

    Raises `BackendError` when this user may not create tables, and a `Signal` when asking again can help.
    """
    connections = execution.connections
    try:
        with connections.engine.connect() as connection:
            connection.execute(CreateTable(execution.table, if_not_exists=True))
    except SQLAlchemyError as error:
        failure = explained(error, connections.dialect, connections.url)
        if isinstance(failure, Signal):  # an SQLite file that another process is writing, its CREATE perhaps
            raise failure from error
        # PostgreSQL's IF NOT EXISTS still loses the race against a concurrent CREATE with a duplicate in its
        # catalogue; what counts is whether the table is there now.
        if not _is_there(execution):
            reason = getattr(error, "orig", error)
            raise BackendError(f"{_missing(execution)} and could not be created: {reason}") from error


def _is_there(execution: Execution) -> bool:
    table = execution.table
    try:
        return inspect(execution.connections.engine).has_table(table.name, schema=table.schema)
    except SQLAlchemyError:
        return False


def refuse(execution: Execution) -> ConfigurationError:
    """The error for a missing table that we were told not to create."""
    return ConfigurationError(_missing(execution))


def _missing(execution: Execution) -> str:
    table = execution.table
    ddl = " ".join(str(CreateTable(table).compile(dialect=execution.connections.dialect)).split())
    return (
        f"the table {table.fullname!r} of the reservations is missing: add a migration for it (let Alembic see "
        f"reservable.backends.database.reservations_table(Base.metadata), or run: {ddl})"
    )
