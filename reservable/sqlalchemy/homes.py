"""Where the reservations of a model live: its own backend, the configured one, or its own database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar
from weakref import ref

from sqlalchemy import URL, Connection, Engine, Table, event, update
from sqlalchemy.exc import UnboundExecutionError
from sqlalchemy.orm import Mapper, Session
from sqlalchemy.util import await_only

from reservable.backends.asynchronous import AsyncBackend
from reservable.backends.base import Backend
from reservable.backends.database import DatabaseBackend, reservations_table
from reservable.backends.database.backend import is_private_memory
from reservable.backends.database.connections import Connections
from reservable.backends.memory import MemoryBackend
from reservable.backends.opening import Store
from reservable.config import fixed_store, opened, settings
from reservable.errors import ConfigurationError, NotSupported
from reservable.sqlalchemy.greenlets import InGreenlet, in_greenlet
from reservable.sqlalchemy.identity import Identity

if TYPE_CHECKING:  # needs greenlet, which blocking code does without
    from reservable.backends.database import AsyncDatabaseBackend

T = TypeVar("T")

SCHEMAS = "schema_translate_map"


def store_of(mapper: Mapper[Any], session: Session | None) -> Store:
    """The store for the rows of this mapper.

    Raises `ConfigurationError` when only a session could tell and there is none.
    """
    store = fixed_store(mapper.class_)
    if store is not None:
        return store
    if session is None:
        raise ConfigurationError(
            f"this {mapper.class_.__name__} belongs to no session, so its database is not known: add it to "
            "one, or call reservable.configure(...) to say where reservations live"
        )
    return default_store(engine_of(mapper, session))


def backend_on(store: Store, model: type[Any], session: Session | None) -> Backend:
    """The backend on the store for blocking code, beside the session.

    Raises `NotSupported` for blocking code in the way of an event loop.
    """
    if in_greenlet() and (awaited := _awaited(store)) is not None:
        return InGreenlet(_beside(awaited, session))
    if store.is_async and asyncio._get_running_loop() is not None:
        raise NotSupported(
            f"this call would block the event loop, and the reservations of {model.__name__} are kept by "
            "asyncio: await its twin (areserve, arelease, ais_reserved, areservation, afirst_reserved ...)"
        )
    return _beside(store.blocking, session)  # type: ignore[no-any-return]


def _awaited(store: Store) -> AsyncBackend | None:
    """For blocking code that may await (`run_sync`); None where there is no such backend, and it has to block."""
    try:
        return store.awaited
    except ConfigurationError:
        return None


def _beside(backend: Any, session: Session | None) -> Any:
    """The backend, seen beside the session, whose write lock on an SQLite file would be waited for in vain."""
    if session is not None and _is_database(backend) and backend.is_sqlite:
        return backend.beside(_blocks(backend, session))
    return backend


def async_backend_on(store: Store, session: Session | None) -> AsyncBackend:
    """The backend on the store for asyncio, beside the session."""
    return _beside(store.awaited, session)  # type: ignore[no-any-return]


def engine_of(mapper: Mapper[Any], session: Session) -> Engine:
    """The engine this session writes the mapper's rows with.

    Raises `ConfigurationError` for a session without one.
    """
    table: Any = mapper.local_table
    try:
        # A session that routes reads to replicas tells writes by their statement.
        bind = session.get_bind(mapper, clause=update(table) if isinstance(table, Table) else None)
    except UnboundExecutionError as error:
        raise ConfigurationError(
            f"the session of this {mapper.class_.__name__} is bound to no database: bind it to one, or call "
            "reservable.configure(...) to say where reservations live"
        ) from error
    return bind.engine if isinstance(bind, Connection) else bind


def schemas_of(session: Session) -> Mapping[Any, Any] | None:
    """The `schema_translate_map` in force: of the session, of what it is bound to, of a connection it uses."""
    own = getattr(session, "execution_options", None)  # since SQLAlchemy 2.1
    if isinstance(own, Mapping) and own.get(SCHEMAS):
        return own[SCHEMAS]  # type: ignore[no-any-return]
    for bind in (session.bind, *_connections(session)):
        schemas = bind.get_execution_options().get(SCHEMAS) if bind is not None else None
        if schemas:
            return schemas  # type: ignore[no-any-return]
    return None


def located(identity: Identity, session: Session | None) -> Identity:
    """The identity of the rows that this session means: those of the schema that it puts in the model's place."""
    schemas = schemas_of(session) if session is not None else None
    schema = getattr(identity.root.local_table, "schema", None)
    return identity if not schemas or schema not in schemas else identity.in_schema(schemas[schema])


def default_store(engine: Engine) -> Store:
    """The table in this engine's own database, or memory beside a database that is in memory itself."""
    options = settings().options
    known = _kept(engine).get("default")
    if known is None or known[0] != options:
        if known is not None:
            known[1].close()
        known = _kept(engine)["default"] = (options, _new_default(engine, options))
    return known[1]


def _new_default(engine: Engine, options: dict[str, Any]) -> Store:
    if is_private_memory(engine):
        return Store(MemoryBackend(options["prefix"]))
    store = opened(engine, options)
    event.listen(engine, "engine_disposed", lambda _: _dispose(store))
    return store


def _dispose(store: Store) -> None:
    """Who disposes of an engine means every connection to its database."""
    store.close()
    if store.is_async and in_greenlet():
        await_only(store.awaited.close())


def reader_of(engine: Engine) -> Connections:
    """Our own connections to read this engine's committed rows with."""
    kept = _kept(engine)
    if "default" in kept and _is_database(kept["default"][1].given):
        return kept["default"][1].given.connections
    if "reader" not in kept:
        reader = kept["reader"] = Connections(engine)
        event.listen(engine, "engine_disposed", lambda _: reader.close())
    return kept["reader"]  # type: ignore[no-any-return]


def kept_for(engine: Engine, key: Any, make: Callable[[], T]) -> T:
    """The one thing of this kind that there is beside the engine's database, made when it is first asked for."""
    kept = _kept(engine)
    if key not in kept:
        kept[key] = make()
    return kept[key]  # type: ignore[no-any-return]


def is_writing(session: Session, is_there: Callable[[Engine], bool]) -> bool:
    """Whether the session holds the write lock of an SQLite file, as far as its driver can tell.

    `is_there` says whether an engine leads to that file.
    """
    return any(
        is_there(connection.engine) and _has_written(connection) for connection in _connections(session)
    )


def _kept(engine: Engine) -> dict[str, Any]:
    """What we made for an engine, kept where it goes away with it.

    On the dialect: an engine and those made of it by execution_options() share theirs, and it outlives
    dispose(). Not in a weak mapping: what is kept leads back to the engine, which would then live for ever.
    """
    kept: dict[str, Any] = engine.dialect.__dict__.setdefault("_reservable", {})
    return kept


def table_of(model: type[Any]) -> tuple[Table, str]:
    """The table of reservations that SQL can join with this model's, and the prefix of its names.

    Raises `NotSupported` while reservations live in a store that is no database.
    """
    store = fixed_store(model)
    if store is None:
        options = settings().options
        return reservations_table(name=options["table"], schema=options["schema"]), options["prefix"]
    backend = store.given
    if _is_database(backend):
        return backend.table, backend.prefix
    raise NotSupported(
        f"reserved() and unreserved() are SQL, and reservations of {model.__name__} live in {backend!r}: keep them in "
        "the model's database, or use first_reserved() and is_reserved(), which work with every store"
    )


def _is_database(backend: Any) -> TypeGuard[DatabaseBackend | AsyncDatabaseBackend]:
    """Whether it is a table in a database, of either colour."""
    return isinstance(getattr(backend, "connections", None), Connections)


def same_database(backend: DatabaseBackend | AsyncDatabaseBackend, engine: Engine) -> bool:
    """Whether the table of reservations is in the database of this engine."""
    if backend.connections.dialect is engine.dialect:
        return True
    return _place(backend.connections.url) == _place(engine.url)


def _place(url: URL) -> tuple[Any, ...]:
    database = url.database
    if url.get_backend_name() == "sqlite" and database and not database.startswith("file:"):
        database = str(Path(database).resolve())
    return url.get_backend_name(), url.host, url.port, database


def _blocks(backend: DatabaseBackend | AsyncDatabaseBackend, session: Session) -> Callable[[], bool]:
    """Whether the session holds the write lock of the backend's SQLite file, as far as its driver can tell."""
    weak = ref(session)

    def blocks() -> bool:
        caller = weak()
        return caller is not None and is_writing(caller, partial(same_database, backend))

    return blocks


def _connections(session: Session) -> list[Connection]:
    """The connections that the session's transaction has in use; asks for none, whatever state it is in."""
    transaction = session.get_transaction()
    # SessionTransaction.connections is public since SQLAlchemy 2.1.7 only.
    return [] if transaction is None else [held[0] for held in transaction._connections.values()]


def _has_written(connection: Connection) -> bool:
    if connection.closed or connection.invalidated:
        return False
    driver: Any = connection.connection.driver_connection
    # In its classic mode the driver opens a transaction for a write and for nothing else; where the user begins
    # transactions by hand, it cannot be told from a read.
    return bool(
        getattr(driver, "isolation_level", None) is not None
        and getattr(driver, "autocommit", -1) == -1
        and driver.in_transaction
    )
