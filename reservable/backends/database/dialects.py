"""What differs between the databases beside their SQL: versions, and which driver error means what."""

from __future__ import annotations

from enum import Enum
from typing import Any

from sqlalchemy.engine import Dialect

from reservable.errors import NotSupported

OLDEST = {"postgresql": (9, 5), "mysql": (8, 0, 13), "mariadb": (10, 6), "sqlite": (3, 35)}
"""The oldest versions with every clause in use: upserts, RETURNING, SKIP LOCKED, expressions as defaults."""

LABELS = {"postgresql": "PostgreSQL", "mysql": "MySQL", "mariadb": "MariaDB", "sqlite": "SQLite"}


class Trouble(Enum):
    """What a driver's error asks us to do."""

    CONTENDED = "ask again"
    LOST = "the connection broke"
    NO_TABLE = "the table of reservations is missing"
    BROKEN = "the store failed"


# PostgreSQL, appendix "Error Codes": serialization_failure, deadlock_detected, lock_not_available.
_PG_CONTENDED = {"40001", "40P01", "55P03"}
_PG_LOST = {"57P01", "57P02", "57P03"}  # admin_shutdown, crash_shutdown, cannot_connect_now
_PG_NO_TABLE = {"42P01", "3F000"}  # undefined_table, invalid_schema_name

# MySQL and MariaDB, "Server Error Message Reference": lock wait timeout, deadlock, record has changed since
# last read (MariaDB), and no such table, unknown database (which is what a missing schema is).
_MYSQL_CONTENDED = {1205, 1213, 1020}
_MYSQL_NO_TABLE = {1146}

# SQLite, "Result and Error Codes": SQLITE_BUSY, SQLITE_LOCKED, whatever their extended code.
_SQLITE_CONTENDED = {5, 6}


def kind(dialect: Dialect) -> str:
    """`postgresql`, `mysql`, `mariadb` or `sqlite`; `NotSupported` for anything else.

    MariaDB answers to SQLAlchemy's name for MySQL too, but its SQL has clauses that MySQL lacks.
    """
    name = dialect.name
    if name == "mysql" and getattr(dialect, "is_mariadb", False):
        return "mariadb"
    if name not in OLDEST:
        raise NotSupported(
            f"reservations cannot live in a {name} database: use PostgreSQL, MySQL 8, MariaDB 10.6 or later, "
            "SQLite, or Redis"
        )
    return name


def check_version(dialect: Dialect) -> None:
    """Refuse a server that is too old, by its version and not by trying."""
    name = kind(dialect)
    version = _version(dialect)
    if version and version < OLDEST[name]:
        raise NotSupported(
            f"reservations need {name} {_dotted(OLDEST[name])} or later, and this server is {_dotted(version)}: "
            "upgrade it, or keep reservations in Redis"
        )


def server(dialect: Dialect) -> str:
    """The server by name and version, as "PostgreSQL 15.8", once the dialect has been introduced to it."""
    return f"{LABELS[kind(dialect)]} {_dotted(_version(dialect))}"


def _version(dialect: Dialect) -> tuple[int, ...]:
    if dialect.name == "sqlite":
        return tuple(dialect.dbapi.sqlite_version_info)  # type: ignore[union-attr]
    found = getattr(dialect, "_mariadb_normalized_version_info", None) or dialect.server_version_info
    return tuple(part for part in found or () if isinstance(part, int))


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def trouble(dialect: Dialect, error: Any, connection: Any, cursor: Any) -> Trouble:  # noqa: PLR0911
    """What this driver error means, by its code and never by its wording where there is a code."""
    if isinstance(error, OSError | EOFError):
        # Of the event loop's: a time-out of asyncpg's, a network that is gone.
        return Trouble.LOST
    if dialect.name == "sqlite":
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in _SQLITE_CONTENDED:
            return Trouble.CONTENDED
        if "no such table" in str(error):
            return Trouble.NO_TABLE
        return Trouble.BROKEN
    if dialect.name == "postgresql":
        state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
        if state in _PG_CONTENDED:
            return Trouble.CONTENDED
        if state in _PG_NO_TABLE:
            return Trouble.NO_TABLE
        if state in _PG_LOST:
            return Trouble.LOST
    else:
        number = error.args[0] if error.args else None
        if number in _MYSQL_CONTENDED:
            return Trouble.CONTENDED
        if number in _MYSQL_NO_TABLE:
            return Trouble.NO_TABLE
    return Trouble.LOST if dialect.is_disconnect(error, connection, cursor) else Trouble.BROKEN
