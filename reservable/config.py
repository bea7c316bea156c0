"""Where reservations live, for the whole process: one call, one variable in the environment, or nothing at all."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload
from weakref import WeakKeyDictionary

from reservable.backends.asynchronous import AsyncBackend
from reservable.backends.base import Backend
from reservable.backends.opening import Store
from reservable.errors import ConfigurationError
from reservable.names import check_prefix

if TYPE_CHECKING:  # neither is loaded before it is used
    import redis
    import redis.asyncio
    from sqlalchemy import URL, Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

VARIABLE = "RESERVABLE_URL"
OWNER_LIMIT = 255


@dataclass(frozen=True)
class Settings:
    """What `configure` was told. `store` None: each model's own database, with the options here."""

    store: Store | None = None
    owner: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


_settings: Settings | None = None
_fallbacks: list[Callable[[], Store]] = []
"""What names without a model live in as long as nothing is configured: one, of a framework that has a database."""


class StoreOptions(TypedDict, total=False):
    """The keyword arguments of `configure`, which describes them."""

    prefix: str
    owner: str | None
    create: bool
    table: str
    schema: str | None
    notify: bool


@overload
def configure(where: None = None, **options: Unpack[StoreOptions]) -> Backend | None: ...
@overload
def configure(
    where: AsyncEngine | redis.asyncio.Redis | redis.asyncio.RedisCluster | AsyncBackend,
    **options: Unpack[StoreOptions],
) -> AsyncBackend: ...
@overload
def configure(
    where: str | URL | Engine | redis.Redis | redis.RedisCluster | Backend, **options: Unpack[StoreOptions]
) -> Backend: ...
def configure(
    where: Any = None,
    *,
    prefix: str = "",
    owner: str | None = None,
    create: bool = True,
    table: str = "reservations",
    schema: str | None = None,
    notify: bool = False,
) -> Any:
    """Say where reservations live, for every model that does not say so itself; replaces an earlier call.

    `where`: a URL, a SQLAlchemy Engine, a redis client, or a `Backend`; those of asyncio too. One call serves
    blocking code and asyncio: each gets a backend of its colour. Returned is the `Backend`, or the `AsyncBackend`
    where `where` is asyncio's (a URL with an asyncio driver, too).

    None goes back to the default: what RESERVABLE_URL names, or else the table `reservations` in the database of
    each model (the other arguments then say how that table is used, and None is returned).

    `prefix` goes in front of every name in the store. `owner` is text for people (default "host:pid"; cut at
    255 characters). `create=False` never creates the table; `table` and `schema` name it. `notify=True`
    has every release in PostgreSQL wake who waits for it, at once (LISTEN and NOTIFY, on connections of their own).

    Raises `ConfigurationError`; the earlier configuration then stays.
    """
    global _settings
    check_prefix(prefix)
    _check_text("owner", owner)
    _check_text("table", table, needed=True)
    _check_text("schema", schema)
    for option, value in (("create", create), ("notify", notify)):
        if not isinstance(value, bool):
            raise ConfigurationError(f"{option} is {value!r}: give True or False")
    options: dict[str, Any] = {
        "prefix": prefix,
        "create": create,
        "table": table,
        "schema": schema,
        "notify": notify,
    }
    store = Store(where, **options) if where is not None else _from_environment(options)
    replaced, _settings = _settings, Settings(store, owner, options)
    if replaced is not None and replaced.store is not None:
        replaced.store.close()
    return store.given if store is not None else None


def _from_environment(options: dict[str, Any]) -> Store | None:
    where = os.environ.get(VARIABLE)
    if not where:
        return None
    try:
        return Store(where, **options)
    except ConfigurationError as error:
        raise ConfigurationError(f"{VARIABLE} in the environment: {error}") from error


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


def store_for(where: Any = None) -> Store:
    """The store that `where` means (as for `configure`), or the configured one.

    Raises `ConfigurationError` when neither is there: a name without a model has no database of its own.
    """
    configured = settings()
    if where is not None:
        # A backend that is given has its own prefix, whatever is configured for others.
        return Store(where, **({} if isinstance(where, Backend | AsyncBackend) else configured.options))
    if configured.store is None and _fallbacks:
        return _fallbacks[0]()
    if configured.store is None:
        raise ConfigurationError(
            "no backend is configured, and without a model's session there is no database to fall back on: call "
            f"reservable.configure('redis://…' or a database URL) or set {VARIABLE}"
        )
    return configured.store


def fall_back_on(make: Callable[[], Store]) -> None:
    """Have names without a model live in the store that this makes, as long as none is configured."""
    _fallbacks[:] = [make]


def backend_for(where: Any = None) -> Backend:
    """The backend for blocking code; as `store_for`."""
    return store_for(where).blocking


def async_backend_for(where: Any = None) -> AsyncBackend:
    """The backend for asyncio; as `store_for`."""
    return store_for(where).awaited


_chosen: WeakKeyDictionary[type[Any], tuple[Any, dict[str, Any], Store]] = WeakKeyDictionary()


def fixed_store(model: type[Any]) -> Store | None:
    """The store that needs no database of the model's to be known: its own or the configured one."""
    where = getattr(model, "__reservable_backend__", None)
    if where is None:
        return settings().store
    # By the class that says so: those that inherit it may share its rows, so they share its store too.
    says = next((cls for cls in model.__mro__ if "__reservable_backend__" in vars(cls)), model)
    options = {} if isinstance(where, Backend | AsyncBackend) else settings().options
    known = _chosen.get(says)
    if known is None or known[0] is not where or known[1] != options:
        known = _chosen[says] = (where, options, opened(where, options))
    return known[2]


def opened(where: Any, options: dict[str, Any]) -> Store:
    """The store; `notify` is for those that can, where nobody asked it of this one in particular."""
    try:
        return Store(where, **options)
    except ConfigurationError:
        if not options.get("notify"):
            raise
        silent: dict[str, Any] = {**options, "notify": False}
        return Store(where, **silent)


def owner_label() -> str:
    """Who we are, for people: the configured owner or "host:pid", as text that every store can keep."""
    return _label(settings().owner, os.getpid())


@lru_cache(maxsize=8)
def _label(owner: str | None, pid: int) -> str:
    return label(owner if owner is not None else f"{socket.gethostname()}:{pid}")


def label(text: str) -> str:
    """Text for people as every store can keep it: without what no character set has, cut at 255 characters."""
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "?")
    return text[:OWNER_LIMIT]
