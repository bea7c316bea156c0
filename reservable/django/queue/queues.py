"""One model that is a queue, on one of Django's databases."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from django.core.exceptions import ValidationError
from django.db import connections, models
from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table
from sqlalchemy.sql.elements import quoted_name
from sqlalchemy.types import NullType

from reservable.django.identity import identity_of
from reservable.errors import BackendError, NotSupported
from reservable.leasing.columns import RESERVED, Errors, Instant
from reservable.leasing.queues import Key, Queue
from reservable.queue.options import options_of

_TYPES: dict[str, Any] = {
    "retry_at": Instant,
    "lease_token": BigInteger,
    "leased_by": String,
    "priority": Integer,
    "attempts": Integer,
    "errors": Errors,
    "finished_at": Instant,
    "step": String,
}


class ModelQueue(Queue):
    """A model, and the alias of its database. Raises `NotSupported` for a model whose row is in several tables."""

    def __init__(self, model: Any, alias: str) -> None:
        meta = model._meta.concrete_model._meta
        if meta.parents:
            parent = next(iter(meta.parents)).__name__
            raise NotSupported(
                f"a row of {model.__name__} is one of {parent}, too (multi-table inheritance): use the queue's verbs of "
                f"{parent}"
            )
        self.alias = alias
        self.identity = identity_of(model)
        self._fields = {field.column: field for field in meta.local_concrete_fields}
        self._names = {
            name: field.column for field in meta.local_concrete_fields for name in (field.name, field.attname)
        }
        every = (_column(field, key=field in meta.pk_fields) for field in self._fields.values())
        table = Table(quoted_name(meta.db_table, True), MetaData(), *every)
        columns = {name: table.c[self._names[name]] for name in RESERVED if name in self._names}
        columns["status"].type = Integer() if options_of(model).values.numeric else String()
        pk = [table.c[field.column] for field in meta.pk_fields]
        super().__init__(model, table, table, columns, pk)
        self.model = self.identity.model

    def text(self, pk: Key) -> str:
        return self.identity.row(pk).partition(":")[2]

    def read_key(self, stored: Key) -> Key:
        connection = connections[self.alias]
        return tuple(
            _read(self._fields[column.name], value, connection)
            for column, value in zip(self.pk, stored, strict=True)
        )

    def stored_key(self, pk: Key) -> Key:
        connection = connections[self.alias]
        fields = (self._fields[column.name] for column in self.pk)
        return tuple(
            field.get_db_prep_value(field.get_prep_value(value), connection, prepared=True)
            for field, value in zip(fields, pk, strict=True)
        )

    def key_of(self, row: Any) -> Key:
        return self.identity.values(row)

    def column(self, name: str) -> Column[Any] | None:
        found = self._names.get(name)
        return None if found is None else self.table.c[found]

    def stored(self, column: Column[Any], value: Any) -> Any:
        """As Django sends it. Raises `NotSupported` for expressions, `BackendError` for what no column can have."""
        field = self._fields[column.name]
        if hasattr(value, "resolve_expression"):
            raise NotSupported(
                f"{field.name} is to be computed by the database: a lease writes plain values; inside "
                "lease.transaction() the row can be saved with expressions"
            )
        if isinstance(value, models.Model):
            value = getattr(value, field.target_field.attname if field.remote_field else "pk")
        try:
            return field.get_db_prep_save(value, connections[self.alias])
        except (ValidationError, TypeError, ValueError) as error:
            raise BackendError(f"the database cannot store a value: {field.name}: {error}") from error


def _read(field: Any, value: Any, connection: Any) -> Any:
    """A value as Django's own queries read it."""
    column = field.get_col(field.model._meta.db_table)
    for convert in (*connection.ops.get_db_converters(column), *column.get_db_converters(connection)):
        value = convert(value, column, connection)
    return value


def _column(field: Any, *, key: bool) -> Column[Any]:
    return Column(quoted_name(field.column, True), _TYPES.get(field.attname, NullType)(), primary_key=key)


_queues: WeakKeyDictionary[Any, dict[str, ModelQueue]] = WeakKeyDictionary()


def queue_of(model: Any, alias: str) -> ModelQueue:
    """What is known of a model on this database; made once."""
    known = _queues.setdefault(model, {})
    if alias not in known:
        known[alias] = ModelQueue(model, alias)
    return known[alias]
