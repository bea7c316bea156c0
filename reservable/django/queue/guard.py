"""Which of the queue's columns an object would change: by what they were when it was loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db.models import F
from django.db.models.expressions import DatabaseDefault

from reservable.leasing.columns import STATE
from reservable.leasing.guard import tell


def remember(row: Any, names: Iterable[str] | None = None) -> None:
    """What the object has now is what its row has: all of the queue's columns, or these."""
    known = vars(row._state).get("_reservable_columns", {})
    found = STATE if names is None else set(names) & set(STATE)
    # Another dict: a copy of the object has a copy of its state, and would share this one.
    vars(row._state)["_reservable_columns"] = {
        **known,
        **{name: vars(row)[name] for name in found if name in vars(row)},
    }


def settle(row: Any, names: Iterable[str] | None = None) -> None:
    """The object was inserted or saved, all of it or these; what the database has chosen is read when it is asked for."""
    if isinstance(vars(row).get("retry_at"), DatabaseDefault):
        del row.retry_at
    remember(row, names)


def changes(row: Any, field: Any, value: Any) -> bool:
    """Whether somebody has given the object another value; one that was never loaded begins with defaults."""
    known = vars(row._state).get("_reservable_columns", {})
    if field.attname in known:
        return bool(known[field.attname] != value)
    default = field.get_default()
    if hasattr(default, "resolve_expression"):  # for the database to say
        return not isinstance(value, type(default))
    return bool(value != default)


def look(row: Any, update_fields: Iterable[str] | None) -> None:
    """Tell of a save that changes the queue's columns of a row that exists."""
    if not row._state.adding:
        _tell(row, update_fields, "a save")


def look_at_all(rows: Iterable[Any], names: Iterable[str]) -> None:
    """Tell of a `bulk_update` of these fields that changes the queue's columns."""
    for row in rows:
        _tell(row, names, "a bulk_update")


@contextmanager
def unchanged_stay(rows: Iterable[Any], names: Iterable[str]) -> Iterator[None]:
    """Inside, objects say of those of these fields that nobody has changed: the column stays what it is."""
    held = []
    for row in rows:
        values = vars(row)
        changed = _changed(row, names)
        still = [field for field in _owned(row, names) if field not in changed]
        held.append((values, still, {**values}))
        values.update({field.attname: F(field.name) for field in still})
    try:
        yield
    finally:
        for values, still, before in held:
            for field in still:
                del values[field.attname]
                if field.attname in before:  # else it was never loaded
                    values[field.attname] = before[field.attname]


def _tell(row: Any, names: Iterable[str] | None, what: str) -> None:
    tell(row, [field.name for field in _changed(row, names)], what, "django")


def _owned(row: Any, names: Iterable[str] | None) -> list[Any]:
    """The fields of the queue's columns: all, or those among these."""
    asked = None if names is None else set(names)
    fields = row._meta.concrete_fields
    return [field for field in fields if field.attname in STATE and (asked is None or field.name in asked)]


def _changed(row: Any, names: Iterable[str] | None) -> list[Any]:
    """Those of them that somebody has given the object other values of."""
    loaded = vars(row)
    return [
        field
        for field in _owned(row, names)
        if field.attname in loaded and changes(row, field, loaded[field.attname])
    ]
