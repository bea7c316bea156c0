"""Reservations in a SQL database."""

from reservable.backends.database.backend import DatabaseBackend
from reservable.backends.database.schema import reservations_table

__all__ = ["DatabaseBackend", "reservations_table"]
