"""From what a user names to the store it means, in both colours: a URL, an engine, a client, or a backend.

The one place that knows all the stores, and it loads only the one that is asked for.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from reservable.backends.asynchronous import AsyncBackend
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
    "postgresql+psycopg://…), a SQLAlchemy Engine or AsyncEngine, a redis client, or a Backend"
)


class Store:
    """One place where reservations live: its backend for blocking code and its backend for asyncio.

    Each is made when first asked for, and then it is the same one: nothing is connected before it is used. The
    options are those of `configure`. Raises `ConfigurationError` for what is no store, or has no such colour,
    without ever showing a password.
    """

    def __init__(
        self,
        where: Any,
        *,
        prefix: str = "",
        create: bool = True,
        table: str = "reservations",
        schema: str | None = None,
        notify: bool = False,
    ) -> None:
        self._where = where
        self.given: Any = _opened(
            where, prefix, {"create": create, "table": table, "schema": schema, "notify": notify}
        )
        """The backend in the colour of what was given."""
        self.is_async = _is_async(self.given)
        if notify and not hasattr(self.given, "notify"):
            raise ConfigurationError(
                f"notify=True is for reservations in PostgreSQL, and these are in {self.given!r}"
            )

    @cached_property
    def blocking(self) -> Backend:
        """The backend for blocking code."""
        backend: Backend = self._twin() if self.is_async else self.given
        return backend

    @cached_property
    def awaited(self) -> AsyncBackend:
        """The backend for asyncio."""
        backend: AsyncBackend = self.given if self.is_async else self._twin()
        return backend

    def close(self) -> None:
        """Close the blocking backend, if it was made here.

        One for asyncio closes its connections with their event loops.
        """
        backend = vars(self).get("blocking", self.given)
        if backend is not self._where and not _is_async(backend):
            backend.close()

    def _twin(self) -> Any:
        twin = getattr(self.given, "twin", None)
        if twin is None:
            colour, other = ("asyncio", "blocking code") if self.is_async else ("blocking code", "asyncio")
            raise ConfigurationError(
                f"{self.given!r} is for {colour}, and {other} needs a backend of its own: give the class a method twin() "
                "that returns one on the same store"
            )
        return twin()


def open_backend(where: Any, **options: Any) -> Backend:
    """The backend that `where` means, for blocking code; `options` as for `configure`."""
    return Store(where, **options).blocking


def _opened(where: Any, prefix: str, table: dict[str, Any]) -> Any:
    """The backend in the colour of what is given."""
    if isinstance(where, str):
        return _from_url(where, prefix, table)
    if _comes_from(where, "sqlalchemy"):
        from reservable.backends.database import engines

        return engines.backend_on(engines.engine_of(where, ACCEPTED), prefix, table)
    if isinstance(where, Backend | AsyncBackend):
        if prefix and prefix != where.prefix:
            raise ConfigurationError(
                f"the backend already has the prefix {where.prefix!r}: give the prefix to it"
            )
        return where
    if any(_comes_from(where, name) for name in ("redis", "fakeredis", "valkey")):
        from reservable.backends.redis import connect

        return connect.over_client(where, prefix)
    raise ConfigurationError(f"reservations cannot live in a {type(where).__qualname__}: give {ACCEPTED}")


def _from_url(url: str, prefix: str, table: dict[str, Any]) -> Any:
    scheme, separator, _ = url.partition("://")
    scheme = scheme.lower() if separator else ""
    if scheme in REDIS_SCHEMES:
        from reservable.backends.redis import connect

        return connect.from_url(url, prefix)
    if scheme == "memory":
        from reservable.backends.memory import MemoryBackend

        return MemoryBackend(prefix)
    from reservable.backends.database import engines

    return engines.backend_on(engines.engine_of(url, ACCEPTED), prefix, table)


def _is_async(backend: Any) -> bool:
    return bool(getattr(backend, "asynchronous", False))


def _comes_from(value: Any, package: str) -> bool:
    """Whether a class of this package is among the ancestors of the value's, without importing the package."""
    return any(cls.__module__.partition(".")[0] == package for cls in type(value).__mro__)
