"""From what a user names to the backend it means: a URL, an engine, a client, or a backend already made.

The one place that knows all the stores, and it loads only the one that is asked for.
"""

from __future__ import annotations

from typing import Any

from reservable.backends.base import Backend
from reservable.errors import ConfigurationError

REDIS_SCHEMES = (
    "redis",
    "rediss",
    "unix",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+cluster",
    "rediss+cluster",
)

ACCEPTED = (
    "a URL (redis://…, rediss://…, redis+sentinel://…, redis+cluster://…, memory://, or any SQLAlchemy URL such as "
    "postgresql+psycopg://…), a SQLAlchemy Engine, a redis client, or a Backend"
)


def open_backend(
    where: Any,
    *,
    prefix: str = "",
    create: bool = True,
    table: str = "reservations",
    schema: str | None = None,
) -> Backend:
    """The backend that `where` means.

    Raises `ConfigurationError` for what is none of them, without ever showing a password.
    """
    if isinstance(where, str):
        return _from_url(where, prefix=prefix, create=create, table=table, schema=schema)
    if _comes_from(where, "sqlalchemy"):
        from sqlalchemy import URL, Engine

        if isinstance(where, URL):
            where = _engine(where)
        if isinstance(where, Engine):
            from reservable.backends.database import DatabaseBackend

            return DatabaseBackend(where, prefix, table=table, schema=schema, create=create)
    if isinstance(where, Backend):
        if prefix and prefix != where.prefix:
            raise ConfigurationError(
                f"the backend already has the prefix {where.prefix!r}: give the prefix to it"
            )
        return where
    if any(_comes_from(where, name) for name in ("redis", "fakeredis", "valkey")):
        from reservable.backends.redis import RedisBackend

        return RedisBackend(where, prefix)
    raise ConfigurationError(f"reservations cannot live in a {type(where).__qualname__}: give {ACCEPTED}")


def _from_url(url: str, *, prefix: str, create: bool, table: str, schema: str | None) -> Backend:
    scheme, separator, _ = url.partition("://")
    scheme = scheme.lower() if separator else ""
    if scheme in REDIS_SCHEMES:
        from reservable.backends.redis.connect import from_url

        return from_url(url, prefix)
    if scheme == "memory":
        from reservable.backends.memory import MemoryBackend

        return MemoryBackend(prefix)
    from reservable.backends.database import DatabaseBackend

    return DatabaseBackend(_engine(url), prefix, table=table, schema=schema, create=create)


def _engine(url: Any) -> Any:
    from sqlalchemy import create_engine
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError

    parsed = _parsed(url)
    if parsed is None:
        raise ConfigurationError(f"the backend's URL cannot be read: give {ACCEPTED}")
    try:
        engine = create_engine(parsed)
    except NoSuchModuleError as error:
        raise ConfigurationError(f"unknown kind of store {parsed.drivername!r}: give {ACCEPTED}") from error
    except ImportError as error:
        raise ConfigurationError(
            f"the driver for {parsed.drivername!r} is not installed ({error}): install it; the extra "
            "[postgresql] brings psycopg, [mysql] and [mariadb] bring PyMySQL"
        ) from error
    except (ArgumentError, ValueError, TypeError) as error:  # the last two from values of the query string
        shown = parsed.set(query={}).render_as_string()
        raise ConfigurationError(f"the URL {shown!r} cannot be used: {error}") from error
    if engine.dialect.is_async:
        raise ConfigurationError(
            f"{parsed.drivername!r} is an asyncio driver: blocking code needs another, such as postgresql+psycopg or "
            "mysql+pymysql"
        )
    return engine


def _parsed(url: Any) -> Any:
    """The URL's parts; None when it cannot be read.

    Not an error: the parser's own repeats the text that it could not read, password and all, and whatever is
    raised while it is being handled carries it along.
    """
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        return None


def _comes_from(value: Any, package: str) -> bool:
    """Whether a class of this package is among the ancestors of the value's, without importing the package."""
    return any(cls.__module__.partition(".")[0] == package for cls in type(value).__mro__)
