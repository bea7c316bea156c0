"""SQLAlchemy's dialect for one of Django's databases, so that the statements are compiled for its driver."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.db import Error
from sqlalchemy import URL, Engine, NullPool, create_engine

from reservable.errors import NotSupported


def engine_of(connection: Any) -> Engine:
    """An engine whose dialect is for the driver of Django's connection; it connects as that one does.

    It is used to ask a server for its version, and for nothing else. Raises `NotSupported` for other databases.
    """
    settings = connection.settings_dict
    url = URL.create(
        f"{connection.vendor}+{_driver(connection)}",
        username=settings["USER"] or None,
        host=settings["HOST"] or None,
        port=int(settings["PORT"]) if str(settings["PORT"]).isdigit() else None,
        database=str(settings["NAME"]) if settings["NAME"] else None,
    )
    return create_engine(url, creator=lambda: bare_connection(connection), poolclass=NullPool)


def _driver(connection: Any) -> str:
    """SQLAlchemy's name of the driver."""
    module = getattr(getattr(connection, "Database", None), "__name__", "").partition(".")[0]
    drivers = {
        "sqlite": {"sqlite3": "pysqlite"},
        "postgresql": {"psycopg": "psycopg", "psycopg2": "psycopg2"},
        # PyMySQL by the name of MySQLdb, as pymysql.install_as_MySQLdb() makes it.
        "mysql": {"MySQLdb": "mysqldb", "pymysql": "pymysql"},
    }
    driver = drivers.get(connection.vendor, {}).get(module)
    if driver is None:
        raise NotSupported(
            f"reservations cannot live in the database {connection.alias!r} ({connection.vendor}, by {module}): use "
            "PostgreSQL by psycopg, MySQL or MariaDB by mysqlclient or PyMySQL, SQLite, or Redis"
        )
    return driver


def bare_connection(connection: Any) -> Any:
    """A driver's connection of its own, made and set up as Django's is, whose taker closes it."""
    made = apart_from(connection)
    made.ensure_connection()
    driver, made.connection = made.connection, None
    return driver


def apart_from(connection: Any) -> Any:
    """A second wrapper for the same database, in autocommit, without a pool of its own."""
    made = connection.copy()
    made.settings_dict["AUTOCOMMIT"] = True
    # Workers that hold one connection each, and wait for a second one of the same full pool, wait for ever.
    made.settings_dict["OPTIONS"].pop("pool", None)
    return made


def introduced(engine: Engine, connection: Any) -> None:
    """Ask the server for its version. Raises what Django raises when it cannot connect."""
    with engine.connect():
        pass
    dialect: Any = engine.dialect
    with suppress(Error):
        dialect.supports_native_uuid = connection.features.has_native_uuid_field
