"""From the name of a reservation back to the model and the row that it speaks of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import DatabaseError

from reservable import names
from reservable.django.identity import identity_of, root_of
from reservable.django.mixin import Reservable
from reservable.errors import ReservableError


def reservable_models() -> list[Any]:
    """The models of this project whose rows can be reserved."""
    return [model for model in apps.get_models() if issubclass(model, Reservable)]


def models_by_name() -> dict[str, Any]:
    """The model whose table has the rows, by its encoded part of a name."""
    found: dict[str, Any] = {}
    for model in reservable_models():
        try:
            found.setdefault(identity_of(model).model, root_of(model))
        except ReservableError:
            continue  # the system checks tell of it
    return found


def rows_named(wanted: Iterable[str]) -> dict[str, Any]:
    """The rows that these names speak of, by name: one query for each model.

    A name without a model, of a model that is unknown here, or of a row that is gone is not among them.
    """
    models = models_by_name()
    keys: dict[Any, dict[tuple[Any, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in wanted:
        model = models.get(name.partition(":")[0])
        if model is None or names.split(name) is None:
            continue
        try:
            keys[model][_key(model, name)].append(name)
        except (ValidationError, TypeError, ValueError, OverflowError):
            continue  # a model of another project, or of another time, has other primary keys
    found: dict[str, Any] = {}
    for model, names_of in keys.items():
        for key, row in _rows(model, list(names_of)):
            found.update(dict.fromkeys(names_of.get(key, ()), row))
    return found


def text_of(row: Any) -> str:
    """What the row's model calls it; empty where it says nothing, or cannot be asked."""
    try:
        return str(row)
    except Exception:  # noqa: BLE001 - the user's own __str__
        return ""


def _key(model: Any, name: str) -> tuple[Any, ...]:
    """The primary key in a name. Raises `ValidationError` and its like for one that no row can have."""
    identity = identity_of(model)
    key = identity.key(name)
    for field, value in zip(identity.fields, key, strict=True):
        field.run_validators(value)
    return key


def _rows(model: Any, keys: list[tuple[Any, ...]]) -> list[tuple[tuple[Any, ...], Any]]:
    identity = identity_of(model)
    try:
        return [(identity.values(row), row) for row in model._base_manager.filter(identity.among(keys))]
    except (DatabaseError, ValueError, OverflowError):
        # A table that is not there yet, text that the database cannot even be asked for: names do without rows.
        return []
