"""Reservations in a SQL database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reservable.backends.database.backend import DatabaseBackend
from reservable.backends.database.schema import reservations_table

if TYPE_CHECKING:
    from reservable.backends.database.asynchronous import AsyncDatabaseBackend

__all__ = ["AsyncDatabaseBackend", "DatabaseBackend", "reservations_table"]


def __getattr__(name: str) -> Any:
    if name == "AsyncDatabaseBackend":  # loaded late: blocking code needs none of SQLAlchemy's asyncio
        from reservable.backends.database.asynchronous import AsyncDatabaseBackend

        return AsyncDatabaseBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
