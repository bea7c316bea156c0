"""Which row an instance is, and what its reservations are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from django.core.exceptions import ValidationError
from django.db import models

from reservable import names
from reservable.backends.database.naming import INTEGER, TEXT, UUIDS
from reservable.errors import InvalidKey, UnidentifiedInstance


class RowIdentity:
    """How the rows of one model are named; made once a model.

    A proxy, and a child by multi-table inheritance, are rows of the model at the root: the same row has the same
    name whichever class it was loaded by.
    """

    def __init__(self, model: Any) -> None:
        root = root_of(model)
        self.model = _name(model, root)
        self.fields = tuple(root._meta.pk_fields)
        self.attributes = tuple(field.attname for field in self.fields)
        """The primary key's attributes of an instance, and their names in lookups."""
        self._typed = tuple(map(_target, self.fields))
        self.kinds = tuple(map(_kind, self._typed))
        """What SQL can write as the same text that Python does; None for the types where it cannot."""
        self._label = model.__name__

    @property
    def in_sql(self) -> bool:
        """Whether SQL can compute the names of this model's rows."""
        return None not in self.kinds

    def values(self, instance: Any) -> tuple[Any, ...]:
        """The primary key of an instance; loads nothing."""
        return tuple(getattr(instance, attribute) for attribute in self.attributes)

    def row(self, values: Sequence[Any]) -> str:
        """The model and primary key in the names of a row's reservations, however the values were typed.

        Raises `UnidentifiedInstance` without a complete primary key, `InvalidKey` for what is none.
        """
        if None in values:
            raise UnidentifiedInstance(
                f"this {self._label} has no complete primary key, or was deleted: save it first"
            )
        if self.kinds == (INTEGER,) and type(values[0]) is int:
            return f"{self.model}:{values[0]}"
        return f"{self.model}:{names.pk_text(self.python(values))}"

    def python(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """A primary key in Python's types. Raises `InvalidKey` for what is none."""
        try:
            return tuple(field.to_python(value) for field, value in zip(self._typed, values, strict=True))
        except (ValidationError, TypeError, ValueError, OverflowError) as error:
            raise InvalidKey(f"this is no primary key of {self._label}: {error}") from error

    def names(self, rows: Sequence[Any], key: str) -> list[str]:
        """The names of many rows: of primary keys, or of their one column's values; the key is encoded already."""
        if len(self.fields) > 1:
            return [f"{self.row(row)}:{key}" for row in rows]
        return [f"{self.row((row,))}:{key}" for row in rows]

    def key(self, name: str) -> tuple[Any, ...]:
        """The primary key in a name."""
        parts = names.pk_parts(name.split(":", 2)[1])
        return tuple(field.to_python(part) for field, part in zip(self._typed, parts, strict=True))

    def among(self, keys: Sequence[tuple[Any, ...]]) -> Any:
        """A condition for these rows alone."""
        matching: Any = models.Q
        if len(self.attributes) == 1:
            return matching(**{f"{self.attributes[0]}__in": [key[0] for key in keys]})
        condition = matching(pk__in=[])
        for key in keys:
            condition |= matching(**dict(zip(self.attributes, key, strict=True)))
        return condition


_identities: WeakKeyDictionary[Any, RowIdentity] = WeakKeyDictionary()


def identity_of(model: Any) -> RowIdentity:
    """The identity of a model, from the cache."""
    identity = _identities.get(model)
    if identity is None:
        identity = _identities[model] = RowIdentity(model)
    return identity


def root_of(model: Any) -> Any:
    """The model whose table has a row for each of this model's: itself, or the first of its parents, and theirs."""
    model = model._meta.concrete_model
    while model._meta.parents:
        model = next(iter(model._meta.parents))._meta.concrete_model
    return model


def _name(model: Any, root: Any) -> str:
    names.must_share(model, root, "__reservable_name__")
    names.must_share(model, root, "__reservable_backend__")
    chosen = getattr(root, "__reservable_name__", None)
    if chosen is not None:
        return names.chosen_model(chosen)
    return names.table_model(root._meta.model_name, root._meta.app_label)


def _target(field: Any) -> Any:
    """The field whose values a foreign key has."""
    while field.remote_field is not None:
        field = field.target_field
    return field


def _kind(field: Any) -> str | None:
    if hasattr(field, "from_db_value"):  # it stores something else than Python has
        return None
    if isinstance(field, models.IntegerField):
        return INTEGER
    if isinstance(field, models.UUIDField):
        return UUIDS
    return TEXT if isinstance(field, models.CharField | models.TextField) else None
