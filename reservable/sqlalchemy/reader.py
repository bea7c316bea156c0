"""Bring rows that our own connection has read into the caller's session, as they are now.

The caller's transaction may see an older snapshot, so its session cannot be asked to load them. They are read
by a session of our own and then handed over: objects the caller has already are brought up to date where the
caller has not changed them, new ones move over whole, and what was eagerly loaded comes with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, inspect
from sqlalchemy.orm import InstanceState, MapperProperty, Session
from sqlalchemy.orm.attributes import set_committed_value
from sqlalchemy.orm.collections import collection_adapter

_READER = "_reservable_reader"


class Read(NamedTuple):
    """Objects that were read and are nobody's yet."""

    reader: Session
    fresh: list[Any]

    def moved_to(self, session: Session) -> list[Any]:
        """The objects in the caller's session; no I/O, no flush, no commit."""
        move = _Move(session, self.reader)
        return [move.found(instance) for instance in self.fresh]


def read(session: Session, connection: Connection, statement: Select[Any], values: Mapping[str, Any]) -> Read:
    """The statement's objects, read through the connection, with all that is loaded along with them.

    `values` are for parameters that the statement has, or may have.
    """
    reader = _reader(session, connection)
    return Read(reader, list(reader.scalars(statement, values).unique()))


def _reader(session: Session, connection: Connection) -> Session:
    """A session like the caller's on our own connection.

    Of the caller's class, so that criteria which its events add to every statement hold here too. It joins what
    the connection has open, ends nothing, and is simply dropped.
    """
    reader_class = _reader_class(type(session))
    reader = reader_class.__new__(reader_class)
    reader.__dict__.update(session.__dict__)  # what a class of the user's own keeps there
    Session.__init__(
        reader,
        bind=connection,
        autoflush=False,
        expire_on_commit=False,
        join_transaction_mode="rollback_only",
        info={**session.info, "reservable_connection": connection},
    )
    return reader


def _reader_class(kind: type[Session]) -> type[Session]:
    """Kept on the session's class, so that the two go away together: some make a class for every request."""
    known: type[Session] | None = kind.__dict__.get(_READER)
    if known is None:

        def get_bind(self: Session, *_: Any, **__: Any) -> Connection:
            connection: Connection = self.info["reservable_connection"]
            return connection

        known = type("Reader", (kind,), {"get_bind": get_bind})
        setattr(kind, _READER, known)
    return known


class _Move:
    """One hand-over from the reader to the caller's session."""

    def __init__(self, session: Session, reader: Session) -> None:
        self._loaded = list(reader.identity_map.values())  # keeps the ids valid
        reader.expunge_all()
        self._counterparts: dict[int, Any] = {}
        for instance in self._loaded:
            existing = session.identity_map.get(inspect(instance).key)
            self._counterparts[id(instance)] = instance if existing is None else existing
        new = [instance for instance in self._loaded if self._counterparts[id(instance)] is instance]
        if len(new) < len(self._loaded):
            for instance in self._loaded:
                # Objects that are merely related keep what they have, as in any load, and get what they lack.
                self._take(self._counterparts[id(instance)], instance, newer=False)
        for instance in new:
            session.add(instance)

    def found(self, fresh: Any) -> Any:
        """The caller's object for a found one, with the values just read."""
        existing = self._counterparts[id(fresh)]
        if existing is not fresh:
            self._take(existing, fresh, newer=True)
        return existing

    def _take(self, target: Any, fresh: Any, *, newer: bool) -> None:
        """Give the caller's object what was read, except where it holds changes that are not flushed yet.

        `newer`: in place of what it has; else only what it has not. A new object's relations are pointed at the
        caller's own objects.
        """
        state: InstanceState[Any] = inspect(target)
        read = inspect(fresh).dict

        def wanted(attributes: Iterable[MapperProperty[Any]], known: bool) -> list[MapperProperty[Any]]:
            keys = (read.keys() - state.committed_state.keys()) - (state.dict.keys() if known else set())
            return [attribute for attribute in attributes if attribute.key in keys]

        is_new = target is fresh
        columns = [] if is_new else wanted(state.mapper.column_attrs, not newer)
        for attribute in columns:
            set_committed_value(target, attribute.key, read[attribute.key])
        for attribute in wanted(state.mapper.relationships, not (newer or is_new)):
            set_committed_value(target, attribute.key, self._related(read[attribute.key], attribute))
        if columns:
            # Composites are made again, and values that report their changes (Mutable) learn whose they are.
            state.manager.dispatch.refresh(state, None, {attribute.key for attribute in columns})

    def _related(self, value: Any, relationship: Any) -> Any:
        """The caller's own objects for what was loaded along a relationship."""
        if relationship.uselist:
            return [self._counterparts.get(id(item), item) for item in collection_adapter(value)]
        return self._counterparts.get(id(value), value)
