"""Bring rows that our own connection has read into the caller's session, as they are now.

The caller's transaction may see an older snapshot, so its session cannot be asked to load them. They are read
by a session of our own and then handed over: objects the caller has already are brought up to date where the
caller has not changed them, new ones move over whole, and what was eagerly loaded comes with them.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Select, inspect
from sqlalchemy.orm import InstanceState, Session
from sqlalchemy.orm.attributes import set_committed_value
from sqlalchemy.orm.collections import collection_adapter

_reader_classes: WeakKeyDictionary[type[Session], type[Session]] = WeakKeyDictionary()


def load(session: Session, connection: Connection, statement: Select[Any]) -> list[Any]:
    """The statement's objects, read through the connection, in the caller's session; no flush, no commit."""
    reader = _reader(session, connection)
    fresh = list(reader.scalars(statement).unique())
    moved = _Move(session, reader)
    return [moved.instance(instance) for instance in fresh]


def _reader(session: Session, connection: Connection) -> Session:
    """A session like the caller's on our own connection.

    Of the caller's class, so that criteria which its events add to every statement hold here too. It joins what
    the connection has open, ends nothing, and is simply dropped.
    """
    kind = type(session)
    reader_class = _reader_classes.get(kind)
    if reader_class is None:

        def get_bind(self: Session, *_: Any, **__: Any) -> Connection:
            return self.info["reservable_connection"]  # type: ignore[no-any-return]

        reader_class = _reader_classes[kind] = type("Reader", (kind,), {"get_bind": get_bind})
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


class _Move:
    """One hand-over from the reader to the caller's session."""

    def __init__(self, session: Session, reader: Session) -> None:
        self.session = session
        loaded = list(reader.identity_map.values())
        reader.expunge_all()
        self._counterparts: dict[int, Any] = {}
        adopted = []
        for instance in loaded:
            existing = session.identity_map.get(inspect(instance).key)  # type: ignore[arg-type]
            if existing is None:
                adopted.append(instance)
            self._counterparts[id(instance)] = instance if existing is None else existing
        for instance in adopted:
            self._relate(instance, instance)
        for instance in adopted:
            session.add(instance)
        self._loaded = loaded  # keeps the ids valid

    def instance(self, fresh: Any) -> Any:
        """The caller's object for one that the reader has loaded."""
        existing = self._counterparts[id(fresh)]
        if existing is not fresh:
            self._refresh(existing, fresh)
            self._relate(existing, fresh)
        return existing

    def _refresh(self, existing: Any, fresh: Any) -> None:
        """Give the caller's object the values just read, except where it holds changes not yet flushed."""
        state: InstanceState[Any] = inspect(existing)
        read = inspect(fresh).dict
        for attribute in state.mapper.column_attrs:
            key = attribute.key
            if key in read and key not in state.committed_state:
                set_committed_value(existing, key, read[key])
        for composite in state.mapper.composites:
            if not any(part.key in state.committed_state for part in composite.props):
                state.dict.pop(composite.key, None)  # to be made again of its columns

    def _relate(self, target: Any, fresh: Any) -> None:
        """Point what was eagerly loaded at the caller's own objects."""
        state: InstanceState[Any] = inspect(target)
        read = inspect(fresh).dict
        for relationship in state.mapper.relationships:
            key = relationship.key
            if key not in read or key in state.committed_state:
                continue
            value = read[key]
            if relationship.uselist:
                value = [self._counterpart(item) for item in collection_adapter(value)]
            else:
                value = self._counterpart(value)
            set_committed_value(target, key, value)

    def _counterpart(self, related: Any) -> Any:
        return self._counterparts.get(id(related), related)
