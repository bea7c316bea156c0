"""Where reservations live, for the whole process: one call, one variable in the environment, or nothing at all."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from reservable.backends.base import Backend
from reservable.backends.opening import open_backend
from reservable.errors import ConfigurationError
from reservable.names import check_prefix

VARIABLE = "RESERVABLE_URL"
OWNER_LIMIT = 255


@dataclass(frozen=True)
class Settings:
    """What `configure` was told. `backend` None: each model's own database, with the options here."""

    backend: Backend | None = None
    opened: bool = False
    owner: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


_settings: Settings | None = None


def configure(
    where: Any = None,
    *,
    prefix: str = "",
    owner: str | None = None,
    create: bool = True,
    table: str = "reservations",
    schema: str | None = None,
) -> Backend | None:
    """Say where reservations live, for every model that does not say so itself; replaces an earlier call.

    `where`: a URL, a SQLAlchemy Engine, a redis client, or a `Backend`. None goes back to the default: what
    RESERVABLE_URL names, or else the table `reservations` in the database of each model (the other arguments
    then say how that table is used, and None is returned).

    `prefix` goes in front of every name in the store. `owner` is text for people (default "host:pid"; cut at
    255 characters). `create=False` never creates the table; `table` and `schema` name it.

    Raises `ConfigurationError`; the earlier configuration then stays.
    """
    global _settings
    check_prefix(prefix)
    _check_text("owner", owner)
    _check_text("table", table, needed=True)
    _check_text("schema", schema)
    options: dict[str, Any] = {"prefix": prefix, "create": create, "table": table, "schema": schema}
    if where is None:
        where = os.environ.get(VARIABLE) or None
    backend = open_backend(where, **options) if where is not None else None
    replaced, _settings = _settings, Settings(backend, backend is not where, owner, options)
    if replaced is not None and replaced.backend is not None and replaced.opened:
        replaced.backend.close()
    return backend


def _check_text(option: str, value: object, *, needed: bool = False) -> None:
    if isinstance(value, str) and value:
        return
    if value is not None or needed:
        raise ConfigurationError(f"{option} is {value!r}: give text that is not empty")


def settings() -> Settings:
    """The settings in force; the environment is read when they are first needed."""
    if _settings is None:
        configure()
    assert _settings is not None
    return _settings


def backend_for(where: Any = None) -> Backend:
    """The backend that `where` means (as for `configure`), or the configured one.

    Raises `ConfigurationError` when neither is there: a name without a model has no database of its own.
    """
    configured = settings()
    if where is not None:
        return where if isinstance(where, Backend) else open_backend(where, **configured.options)
    if configured.backend is None:
        raise ConfigurationError(
            "no backend is configured, and without a model's session there is no database to fall back on: call "
            f"reservable.configure('redis://…' or a database URL) or set {VARIABLE}"
        )
    return configured.backend


def owner_label() -> str:
    """Who we are, for people: the configured owner or "host:pid", as text that every store can keep."""
    return _label(settings().owner, os.getpid())


@lru_cache(maxsize=8)
def _label(owner: str | None, pid: int) -> str:
    text = owner if owner is not None else f"{socket.gethostname()}:{pid}"
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "?")
    return text[:OWNER_LIMIT]
