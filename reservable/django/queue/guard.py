"""Which of the queue's columns an object would change: by what they were when it was loaded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
    if row._state.adding:
        return
    asked = None if update_fields is None else set(update_fields)
    changed = [
        field.name
        for field in row._meta.concrete_fields
        if field.attname in STATE
        and field.attname in vars(row)
        and (asked is None or field.name in asked)
        and changes(row, field, vars(row)[field.attname])
    ]
    tell(row, changed, "a save", "django")
