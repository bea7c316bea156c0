"""What is known of one mapped class that is a queue: its columns, its options and its index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Column, Index, Table
from sqlalchemy.orm import ColumnProperty, Mapper, class_mapper
from sqlalchemy.schema import sort_tables
from sqlalchemy.sql.visitors import iterate

from reservable.backends.database.naming import INTEGER, UUIDS
from reservable.errors import ConfigurationError, NotSupported
from reservable.leasing.columns import RESERVED
from reservable.leasing.queues import Key, Queue
from reservable.sqlalchemy.identity import Identity, identity_of
from reservable.sqlalchemy.queue.columns import OURS


class MappedQueue(Queue):
    """One mapped class."""

    def __init__(self, mapper: Mapper[Any]) -> None:
        columns = {
            name: mapper.column_attrs[name].columns[0] for name in RESERVED if name in mapper.column_attrs
        }
        super().__init__(mapper.class_, mapper.class_, table_of(mapper), columns, identity_of(mapper).columns)
        self.mapper = mapper
        self.model = self.identity.model

    @property
    def identity(self) -> Identity:
        return identity_of(self.mapper)

    @property
    def parts(self) -> list[Sequence[Column[Any]]]:
        """In each table that holds a part of such a row, a subclass's too, what is equal to the columns of `pk`.

        None comes before another that refers to it.
        """
        found: dict[Any, Sequence[Column[Any]]] = {self.pk[0].table: self.pk}
        for mapper in [*[*self.mapper.iterate_to_root()][::-1], *self.mapper.self_and_descendants]:
            for table in mapper.tables:
                if table not in found and isinstance(table, Table):
                    columns = [_partner(mapper, table, found, number) for number in range(len(self.pk))]
                    partners = [column for column in columns if column is not None]
                    if len(partners) == len(columns):
                        found[table] = partners
        return [found[table] for table in sort_tables(found)[::-1]]

    def text(self, pk: Key) -> str:
        return self.identity.pk(pk)

    def stored_key(self, pk: Key) -> Key:
        typed = self.identity.typed(pk)
        return tuple(map(_given, self.pk, self.identity.kinds, pk, typed))

    def key_of(self, row: Any) -> Key:
        return tuple(getattr(row, name) for name in self.identity.attributes)

    def column(self, name: str) -> Column[Any] | None:
        attribute = self.mapper.column_attrs.get(name)
        column = attribute.columns[0] if attribute is not None else None
        return column if isinstance(column, Column) else None


def _given(column: Any, kind: str | None, value: Any, typed: Any) -> Any:
    """A part of a key as drivers take it, which are not all as lenient as people."""
    if kind == UUIDS:
        return typed if column.type.as_uuid else str(typed)
    return typed if kind == INTEGER else value


def _partner(
    mapper: Mapper[Any], table: Table, known: dict[Any, Sequence[Column[Any]]], number: int
) -> Column[Any] | None:
    """The column of this table that is equal to one of the primary key's: joined with it, or mapped together."""
    equals = [columns[number] for columns in known.values()]
    joins: Any = iterate(mapper.inherit_condition) if mapper.inherit_condition is not None else ()
    groups: list[Any] = [
        (one.left, one.right) for one in joins if hasattr(one, "left") and hasattr(one, "right")
    ]
    groups += [attribute.columns for attribute in mapper.column_attrs]
    for group in groups:
        if any(column is equal for column in group for equal in equals):
            for column in group:
                if isinstance(column, Column) and column.table is table:
                    return column
    return None


_queues: WeakKeyDictionary[Mapper[Any], MappedQueue] = WeakKeyDictionary()


def queue_of(model: type[Any]) -> MappedQueue:
    """What is known of a mapped class."""
    mapper = class_mapper(model)
    try:
        return _queues[mapper]
    except KeyError:
        queue = _queues[mapper] = MappedQueue(mapper)
        return queue


def column_of(mapper: Mapper[Any], name: str) -> Any:
    """The column of one attribute; None where it is none.

    Asked like this, SQLAlchemy does not look at relationships, whose other classes may not be there yet.
    """
    found: Any = mapper.get_property(name) if mapper.has_property(name) else None
    return found.columns[0] if isinstance(found, ColumnProperty) else None


def table_of(mapper: Mapper[Any]) -> Table:
    """The table with the queue's columns, in a hierarchy of several."""
    table: Any = column_of(mapper, "status").table
    if not isinstance(table, Table):
        raise NotSupported(f"{mapper.class_.__name__} is not mapped to a table, so it cannot be a queue")
    return table


def add_index(mapper: Mapper[Any], _: type[Any]) -> None:
    """The one index, for claims and for taking over, made when the class is mapped.

    Within a status and a priority, rows stand in the order in which they are claimed: the first one due is found
    at once, and none that is not due is looked at.
    """
    table = table_of(mapper)
    for name in RESERVED:
        column = column_of(mapper, name)
        if column is not None and column.info.get("reservable") != OURS["reservable"]:
            raise ConfigurationError(
                f"{mapper.class_.__name__}.{name} is the queue's own: delete the class's declaration of it, or call it "
                "something else (docs/from-status-retry-at.md says how an old column becomes the queue's)"
            )
    columns = [column_of(mapper, name) for name in ("status", "priority", "retry_at")]
    columns += list(table.primary_key.columns)
    if not any(list(index.columns) == columns for index in table.indexes):
        Index(None, *columns)
