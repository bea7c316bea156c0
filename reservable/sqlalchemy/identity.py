"""Which row an instance is, and what its reservations are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Integer, Table, Uuid
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.orm import InstanceState, Mapper
from sqlalchemy.orm.attributes import instance_state
from sqlalchemy.types import CHAR, NCHAR, Enum, String, TypeDecorator, TypeEngine

from reservable import names
from reservable.backends.database.naming import INTEGER, TEXT, UUIDS
from reservable.errors import InvalidKey, NotSupported, UnidentifiedInstance

_BEYOND = 2**64
"""More than the integer column of any database holds."""


class Identity:
    """How the rows of one mapped class are named; made once a class."""

    def __init__(self, mapper: Mapper[Any]) -> None:
        self.mapper = mapper
        self.root = _root(mapper)
        self.model = _model(mapper, self.root)
        self.columns = tuple(mapper.primary_key)
        self.attributes = tuple(mapper.get_property_by_column(column).key for column in self.columns)
        self.kinds = tuple(_kind(column.type) for column in self.columns)
        """What SQL can write as the same text that Python does; None for the types where it cannot."""
        self._canonical = tuple(map(_canonical, self.columns, self.kinds))
        self._one_integer = self.kinds == (INTEGER,)
        self.plain = all(kind in (INTEGER, TEXT) for kind in self.kinds)
        """Whether drivers return the key's values just as SQLAlchemy does."""
        self._moved: dict[str | None, Identity] = {}

    def in_schema(self, schema: str | None) -> Identity:
        """The identity of the same class's rows in another schema, as a `schema_translate_map` puts them."""
        moved = self._moved.get(schema)
        if moved is None:
            moved = copy(self)
            table = names.table_model(getattr(self.root.local_table, "name", ""), schema)
            chosen = getattr(self.root.class_, "__reservable_name__", None)
            moved.model = table if chosen is None else f"{names.table_model('', schema)}{self.model}"
            self._moved[schema] = moved
        return moved

    @property
    def in_sql(self) -> bool:
        """Whether SQL can compute the names of this class's rows."""
        return None not in self.kinds

    def pk(self, values: Sequence[Any]) -> str:
        """The encoded primary key, however its values were typed."""
        if self._one_integer and type(values[0]) is int and -_BEYOND < values[0] < _BEYOND:
            return str(values[0])
        return names.pk_text(self.typed(values))

    def typed(self, values: Sequence[Any]) -> list[Any]:
        """The primary key in the types of its columns. Raises `InvalidKey` for what cannot be one."""
        try:
            return [
                value if value is None else to(value)
                for to, value in zip(self._canonical, values, strict=True)
            ]
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidKey(f"this is no primary key of {self.mapper.class_.__name__}: {error}") from error

    def name(self, values: Sequence[Any], key: Any) -> str:
        """The name of the reservation of the row with this primary key."""
        return names.row_name(self.model, self.pk(values), key)

    def names(self, rows: Sequence[Any], key: str) -> list[str]:
        """The names of many rows: of primary keys, or of their one column's values; the key is encoded already."""
        front, back = f"{self.model}:", f":{key}"
        if len(self.columns) > 1:
            return [f"{front}{self.pk(row)}{back}" for row in rows]
        if self._one_integer and all(type(value) is int for value in rows):
            return [f"{front}{value}{back}" for value in rows]
        return [f"{front}{self.pk((value,))}{back}" for value in rows]

    def values(self, name: str) -> tuple[Any, ...]:
        """The primary key in a name that SQL has computed."""
        pk = name.split(":", 2)[1]
        return tuple(
            _FROM_TEXT[str(kind)](text) for kind, text in zip(self.kinds, names.pk_parts(pk), strict=True)
        )


_identities: WeakKeyDictionary[Mapper[Any], Identity] = WeakKeyDictionary()


def identity_of(mapper: Mapper[Any]) -> Identity:
    """The identity of a mapper, from the cache."""
    try:
        return _identities[mapper]
    except KeyError:
        identity = _identities[mapper] = Identity(mapper)
        return identity


def row_of(instance: Any) -> tuple[Identity, Sequence[Any]]:
    """The identity of the instance's class and its primary key; loads and flushes nothing.

    Raises `UnidentifiedInstance` without a complete primary key.
    """
    state: InstanceState[Any] = instance_state(instance)
    identity = identity_of(state.mapper)
    if state.key is not None:
        return identity, state.key[1]
    # Not loaded and not flushed: what was assigned is in the instance itself.
    values = [state.dict.get(attribute) for attribute in identity.attributes]
    if None in values:
        raise UnidentifiedInstance(
            f"this {type(instance).__name__} has no complete primary key yet: flush or commit it first"
        )
    return identity, values


def must_exist(instance: Any) -> None:
    """Raises `UnidentifiedInstance` for a row that is known to be deleted."""
    state: InstanceState[Any] = instance_state(instance)
    if state.deleted or state.was_deleted:
        raise UnidentifiedInstance(
            f"the row of this {type(instance).__name__} was deleted: there is nothing to reserve"
        )


def _root(mapper: Mapper[Any]) -> Mapper[Any]:
    """The top of the hierarchy that shares rows: a concrete subclass has a table, and rows, of its own."""
    while mapper.inherits is not None and not mapper.concrete:
        mapper = mapper.inherits
    return mapper


def _model(mapper: Mapper[Any], root: Mapper[Any]) -> str:
    chosen, own = _chosen_name(root, root), _chosen_name(mapper, root)
    if own != chosen:
        raise names.not_shared(mapper.class_, root.class_, "__reservable_name__")
    names.must_share(mapper.class_, root.class_, "__reservable_backend__")
    if chosen is not None:
        return names.chosen_model(chosen)
    table = root.local_table
    if not isinstance(table, Table):
        raise NotSupported(
            f"{root.class_.__name__} is not mapped to a table: set __reservable_name__ to name its reservations"
        )
    return names.table_model(table.name, table.schema)


def _chosen_name(mapper: Mapper[Any], root: Mapper[Any]) -> Any:
    """The `__reservable_name__` that holds for a class; a parent with rows of its own does not pass its name on."""
    others = root.inherits.class_.__mro__ if root.inherits is not None else ()
    for cls in mapper.class_.__mro__:
        if cls not in others and "__reservable_name__" in vars(cls):
            return getattr(mapper.class_, "__reservable_name__")  # noqa: B009 - a declared_attr gives its value
    return None


def _kind(type_: TypeEngine[Any]) -> str | None:
    if isinstance(type_, Integer):
        return INTEGER
    if isinstance(type_, Uuid):
        return UUIDS
    # An Enum is a String that stores something else, and CHAR comes back padded from some servers.
    if isinstance(type_, String) and not isinstance(type_, Enum | CHAR | NCHAR):
        return TEXT
    return None


def _integer(value: Any) -> int:
    number = int(value)
    if number != value and not isinstance(value, str):
        raise ValueError(f"{value!r} is no integer")
    if not -_BEYOND < number < _BEYOND:
        raise ValueError("an integer of more than 64 bits is in no database")
    return number


def _uuid(value: Any) -> UUID:
    return value if isinstance(value, UUID) else UUID(str(value))


def _as_is(value: Any) -> Any:
    return value


def _unpadded(value: Any) -> Any:
    return value.rstrip(" ") if isinstance(value, str) else value


def _canonical(column: ColumnElement[Any], kind: str | None) -> Callable[[Any], Any]:
    """What makes equal values of this column one value, however they were typed."""
    if kind is not None:
        return {INTEGER: _integer, UUIDS: _uuid, TEXT: _as_is}[kind]
    if isinstance(column.type, CHAR | NCHAR):
        # PostgreSQL gives them back padded to their length; spaces at the end say nothing in SQL.
        return _unpadded
    if isinstance(column.type, Enum):
        return partial(_member, column.type)
    if isinstance(column.type, TypeDecorator):
        return partial(_decorated, column.type)
    return _as_is


def _member(type_: Enum, value: Any) -> Any:
    """An Enum column takes members and their names; both are the same row."""
    classes = type_.enum_class
    return classes[value] if classes is not None and value in classes.__members__ else value


def _decorated(type_: TypeDecorator[Any], value: Any) -> Any:
    """The value as the user's type would write it and read it back, so that what it takes for equal is equal."""
    for convert in (type_.process_bind_param, type_.process_result_value):
        # The base class has neither, and the user's own may need more of a real database than there is here.
        with suppress(Exception):
            value = convert(value, _DIALECT)
    return value


_DIALECT = DefaultDialect()
_FROM_TEXT: dict[str, Callable[[str], Any]] = {INTEGER: int, UUIDS: UUID, TEXT: str}
