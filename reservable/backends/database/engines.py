"""From a URL or an engine to the backend on it, and to the engine of the other colour on the same database."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from reservable.backends.database.backend import DatabaseBackend
from reservable.backends.database.failures import shown
from reservable.errors import ConfigurationError

if TYPE_CHECKING:  # loaded when it is needed, for it needs greenlet
    from reservable.backends.database.asynchronous import AsyncDatabaseBackend

BLOCKING: dict[str, tuple[str, ...]] = {
    "postgresql": ("psycopg", "psycopg2", "pg8000"),
    "mysql": ("pymysql", "mysqldb", "mysqlconnector"),
    "sqlite": ("pysqlite",),
}
AWAITED: dict[str, tuple[str, ...]] = {
    "postgresql": ("psycopg", "asyncpg"),
    "mysql": ("aiomysql", "asyncmy"),
    "sqlite": ("aiosqlite",),
}
"""SQLAlchemy's names of the drivers of either colour, the first that is installed to be taken."""

_MODULES = {"pysqlite": "sqlite3", "mysqldb": "MySQLdb", "mysqlconnector": "mysql.connector"}


def backend_on(engine: Engine, prefix: str, table: dict[str, Any]) -> DatabaseBackend | AsyncDatabaseBackend:
    """The backend in the colour of the engine's driver; `table` holds the other options of `configure`."""
    if not engine.dialect.is_async:
        return DatabaseBackend(engine, prefix, **table)
    from reservable.backends.database.asynchronous import AsyncDatabaseBackend

    return AsyncDatabaseBackend(engine, prefix, **table)


def engine_of(where: Any, accepted: str) -> Engine:
    """The engine that a URL, an engine or an `AsyncEngine` means.

    Raises `ConfigurationError` that lists what is `accepted`, without ever showing a password.
    """
    engine = getattr(where, "sync_engine", where)
    if isinstance(engine, Engine):
        return engine
    if not isinstance(where, str | URL):
        raise ConfigurationError(f"reservations cannot live in a {type(where).__qualname__}: give {accepted}")
    parsed = _parsed(where)
    if parsed is None:
        raise ConfigurationError(f"the backend's URL cannot be read: give {accepted}")
    try:
        return _engine(parsed)
    except NoSuchModuleError as error:
        raise ConfigurationError(f"unknown kind of store {parsed.drivername!r}: give {accepted}") from error
    except ImportError as error:
        raise ConfigurationError(
            f"the driver of {parsed.drivername!r} is not installed ({error}): install it{_extra(_drivers(parsed))}"
        ) from error
    except (ArgumentError, ValueError, TypeError) as error:  # the last two from values of the query string
        shown = parsed.set(query={}).render_as_string()
        raise ConfigurationError(f"the URL {shown!r} cannot be used: {error}") from error


def _engine(url: URL) -> Engine:
    """The engine; for a URL that names no driver, by one that is installed."""
    try:
        return create_engine(url)
    except ImportError:
        if "+" in url.drivername:
            raise
        kind = "mysql" if url.drivername == "mariadb" else url.drivername
        for drivers, make in ((BLOCKING, create_engine), (AWAITED, _awaited)):
            for driver in filter(_is_installed, drivers.get(kind, ())):
                return make(url.set(drivername=f"{url.drivername}+{driver}"))
        raise


def _is_installed(driver: str) -> bool:
    return find_spec(_MODULES.get(driver, driver).partition(".")[0]) is not None


def _drivers(url: URL) -> tuple[str, ...]:
    """The driver that the URL names; those of blocking code where it names none."""
    kind, _, driver = url.drivername.partition("+")
    return (driver,) if driver else BLOCKING.get("mysql" if kind == "mariadb" else kind, ())


_EXTRAS = {
    "psycopg": "reservable[postgresql]",
    "asyncpg": "reservable[asyncpg]",
    "pymysql": "reservable[mysql]",
    "aiomysql": "reservable[aiomysql]",
    "aiosqlite": "reservable[aiosqlite]",
}
"""What brings a driver."""


def _extra(drivers: Iterable[str]) -> str:
    """How a user comes by one of these drivers."""
    extras = [_EXTRAS[driver] for driver in drivers if driver in _EXTRAS]
    return f' (pip install "{extras[0]}" brings one)' if extras else ""


def twin(
    backend: DatabaseBackend | AsyncDatabaseBackend, *, create: bool
) -> DatabaseBackend | AsyncDatabaseBackend:
    """A backend for the other colour on the same table, by the same URL with another driver.

    What is not in the URL (`connect_args`, `creator`, listeners) does not come along: who needs it configures an
    engine of that colour. Raises `ConfigurationError` where no driver of that colour is installed.
    """
    url, dialect = backend.connections.url, backend.connections.dialect
    wanted, drivers = ("blocking code", BLOCKING) if dialect.is_async else ("asyncio", AWAITED)
    names = drivers["mysql" if dialect.name == "mariadb" else dialect.name]
    found = [name for name in names if _is_installed(name)]
    if not found:
        raise ConfigurationError(
            f"{wanted} cannot reach {shown(url)} by {dialect.driver!r}: install one of {', '.join(names)}{_extra(names)}"
        )
    driver = dialect.driver if dialect.driver in found else found[0]  # psycopg has both colours
    other = url.set(drivername=f"{url.get_backend_name()}+{driver}")
    engine = create_engine(other) if dialect.is_async else _awaited(other)
    table = {
        "table": backend.table.name,
        "schema": backend.table.schema,
        "create": create,
        "notify": backend.notify,
    }
    return backend_on(engine, backend.prefix, table)


def _awaited(url: URL) -> Engine:
    if find_spec("greenlet") is None:
        raise ConfigurationError(
            f"asyncio reaches {shown(url)} by SQLAlchemy's greenlets, and greenlet is not installed: install SQLAlchemy[asyncio]"
        )
    from sqlalchemy.ext.asyncio import create_async_engine

    return create_async_engine(url).sync_engine


def _parsed(url: Any) -> URL | None:
    """The URL's parts; None when it cannot be read.

    Not an error: the parser's own repeats the text that it could not read, password and all, and whatever is
    raised while it is being handled carries it along.
    """
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        return None
