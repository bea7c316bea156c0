"""Where the reservations of a model live: its own backend, the configured one, or its own database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, ref

from sqlalchemy import URL, Connection, Engine, Table, event, update
from sqlalchemy.exc import UnboundExecutionError
from sqlalchemy.orm import Mapper, Session

from reservable.backends.base import Backend
from reservable.backends.database import DatabaseBackend
from reservable.backends.database.backend import is_private_memory
from reservable.backends.database.connections import Connections
from reservable.backends.memory import MemoryBackend
from reservable.backends.opening import open_backend
from reservable.config import settings
from reservable.errors import ConfigurationError, NotSupported
from reservable.sqlalchemy.identity import Identity

SCHEMAS = "schema_translate_map"

_chosen: WeakKeyDictionary[type[Any], tuple[Any, dict[str, Any], Backend]] = WeakKeyDictionary()


def fixed_backend(model: type[Any]) -> Backend | None:
    """The backend that needs no session to be known: the model's own or the configured one."""
    where = getattr(model, "__reservable_backend__", None)
    if where is None:
        return settings().backend
    if isinstance(where, Backend):
        return where
    # By the class that says so: those that inherit it may share its rows, so they share its store too.
    says = next((cls for cls in model.__mro__ if "__reservable_backend__" in vars(cls)), model)
    options = settings().options
    known = _chosen.get(says)
    if known is None or known[0] is not where or known[1] != options:
        known = _chosen[says] = (where, options, open_backend(where, **options))
    return known[2]


def backend_of(mapper: Mapper[Any], session: Session | None) -> Backend:
    """The backend for the rows of this mapper.

    Raises `ConfigurationError` when only a session could tell and there is none.
    """
    backend = fixed_backend(mapper.class_)
    if backend is None:
        if session is None:
            raise ConfigurationError(
                f"this {mapper.class_.__name__} belongs to no session, so its database is not known: add it to "
                "one, or call reservable.configure(...) to say where reservations live"
            )
        backend = default_backend(engine_of(mapper, session))
    if session is not None and isinstance(backend, DatabaseBackend) and backend.is_sqlite:
        return backend.beside(_blocks(backend, session))
    return backend


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
    options = [own] if isinstance(own, Mapping) else []
    options += [
        bind.get_execution_options() for bind in (session.bind, *_connections(session)) if bind is not None
    ]
    return next((option[SCHEMAS] for option in options if option.get(SCHEMAS)), None)


def located(identity: Identity, session: Session | None) -> Identity:
    """The identity of the rows that this session means: those of the schema that it puts in the model's place."""
    schemas = schemas_of(session) if session is not None else None
    schema = getattr(identity.root.local_table, "schema", None)
    return identity if not schemas or schema not in schemas else identity.in_schema(schemas[schema])


def default_backend(engine: Engine) -> Backend:
    """The table in this engine's own database, or memory beside a database that is in memory itself."""
    options = settings().options
    known = _kept(engine).get("default")
    if known is None or known[0] != options:
        if known is not None:
            known[1].close()
        known = _kept(engine)["default"] = (options, _new_default(engine, options))
    return known[1]


def _new_default(engine: Engine, options: dict[str, Any]) -> Backend:
    if is_private_memory(engine):
        return MemoryBackend(options["prefix"])
    backend = DatabaseBackend(engine, **options)
    # Who disposes of an engine means every connection to its database.
    event.listen(engine, "engine_disposed", lambda _: backend.close())
    return backend


def reader_of(engine: Engine) -> Connections:
    """Our own connections to read this engine's committed rows with."""
    kept = _kept(engine)
    if "default" in kept and isinstance(kept["default"][1], DatabaseBackend):
        return kept["default"][1].connections
    if "reader" not in kept:
        reader = kept["reader"] = Connections(engine)
        event.listen(engine, "engine_disposed", lambda _: reader.close())
    return kept["reader"]  # type: ignore[no-any-return]


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
    backend = fixed_backend(model)
    if backend is None:
        from reservable.backends.database import reservations_table

        options = settings().options
        return reservations_table(name=options["table"], schema=options["schema"]), options["prefix"]
    if isinstance(backend, DatabaseBackend):
        return backend.table, backend.prefix
    raise NotSupported(
        f"reserved() and unreserved() are SQL, and reservations of {model.__name__} live in {backend!r}: keep them in "
        "the model's database, or use first_reserved() and is_reserved(), which work with every store"
    )


def same_database(backend: DatabaseBackend, engine: Engine) -> bool:
    """Whether the table of reservations is in the database of this engine."""
    if backend.connections.dialect is engine.dialect:
        return True
    return _place(backend.connections.url) == _place(engine.url)


def _place(url: URL) -> tuple[Any, ...]:
    database = url.database
    if url.get_backend_name() == "sqlite" and database and not database.startswith("file:"):
        database = str(Path(database).resolve())
    return url.get_backend_name(), url.host, url.port, database


def _blocks(backend: DatabaseBackend, session: Session) -> Callable[[], bool]:
    """Whether the session holds the write lock of the backend's SQLite file, as far as its driver can tell."""
    weak = ref(session)

    def blocks() -> bool:
        caller = weak()
        return caller is not None and any(
            same_database(backend, connection.engine) and _has_written(connection)
            for connection in _connections(caller)
        )

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
