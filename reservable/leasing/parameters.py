"""What differs from one call to the next in statements that are put together once.

SQLAlchemy takes longer to put a statement together than the database to run it. So those that workers send all the
time are kept, by what makes them differ (their shape), and sent again with other values for their parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Column, ColumnElement, and_, bindparam, tuple_
from sqlalchemy.sql.elements import ClauseElement

T = TypeVar("T")

Kept = dict[Hashable, Any]
"""Statements by their shapes."""

Values = dict[str, Any]
"""The values of parameters, by name."""

BELOW, PRIORITY, LIMIT, WORKER, DELAY = (
    f"reservable_{name}" for name in ("below", "priority", "limit", "worker", "delay")
)
_KEY, _KEYS, _TOKEN, _LEASES, _COLUMN = (
    f"reservable_{name}" for name in ("key", "keys", "token", "leases", "column")
)
"""Names that no column of the user's has."""


def once(kept: Kept, shape: Hashable, build: Callable[[], T]) -> T:
    """The statement of this shape, built where there is none yet."""
    if shape not in kept:
        kept[shape] = build()
    return kept[shape]  # type: ignore[no-any-return]


# Leases: primary keys and tokens

Held = tuple[tuple[Any, ...], int]
"""The primary key of a row and the token of the lease on it."""


def owned(pk: Sequence[Column[Any]], token: Column[Any], held: Sequence[Held]) -> ColumnElement[bool]:
    """The rows that still have the token they were claimed with: one primary key and token for each."""
    values = held_values(held)
    if _LEASES in values:
        every = tuple_(*pk, token)
        return every.in_(bindparam(_LEASES, values[_LEASES], every.type, expanding=True))
    same_token = token == bindparam(_TOKEN, values[_TOKEN], token.type)
    if _KEYS in values:
        keys: Any = pk[0] if len(pk) == 1 else tuple_(*pk)
        return and_(keys.in_(bindparam(_KEYS, values[_KEYS], keys.type, expanding=True)), same_token)
    parts = (
        column == bindparam(f"{_KEY}_{number}", values[f"{_KEY}_{number}"], column.type)
        for number, column in enumerate(pk)
    )
    return and_(*parts, same_token)


def held_values(held: Sequence[Held]) -> Values:
    """The values of `owned`; their names are its shape."""
    first, token = held[0]
    if len(held) == 1:
        return {f"{_KEY}_{number}": value for number, value in enumerate(first)} | {_TOKEN: token}
    if any(other != token for _, other in held):
        return {_LEASES: [(*key, number) for key, number in held]}
    return {_KEYS: [key[0] if len(key) == 1 else key for key, _ in held], _TOKEN: token}


# Columns that are set


def column_values(columns: Mapping[Column[Any], Any]) -> Values:
    """The values of `assigned`."""
    return {f"{_COLUMN}_{number}": value for number, value in enumerate(columns.values())}


def assigned(columns: Mapping[Column[Any], Any]) -> list[tuple[Column[Any], Any]]:
    """Columns and what they are set to: SQL as it is, anything else as a parameter."""
    return [
        (column, value if is_sql(value) else bindparam(name, value, column.type))
        for (column, value), name in zip(columns.items(), column_values(columns), strict=True)
    ]


def is_sql(value: Any) -> bool:
    """Whether a value is an expression for the database to compute."""
    return isinstance(value, ClauseElement) or hasattr(value, "__clause_element__")
