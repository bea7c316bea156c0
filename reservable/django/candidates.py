"""What a caller's queryset asks for: which rows in which order, on which database, and what cannot be served."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connections
from django.db.models.query import ModelIterable

from reservable.django.companions import companion
from reservable.django.connections import in_transaction
from reservable.django.dialects import engine_of
from reservable.django.homes import is_in_memory
from reservable.django.identity import identity_of
from reservable.django.mixin import Reservable
from reservable.errors import NotSupported

_NO_ROWS = "its rows are no objects of the model"
_NO_TABLE = "its rows are not rows of one table"
_NO_LOCKS = "its locks would belong to your transaction, and a reservation is made outside of it"


class Candidates:
    """The rows of one queryset, in its own order, as its database has committed them (and the caller's transaction).

    Raises `NotSupported`, naming the clause, for querysets whose rows are not rows of one table, and for locking ones.
    """

    def __init__(self, queryset: Any) -> None:
        _check(queryset)
        rows = queryset._chain()
        rows._for_write = True  # from where they will be written: never from a replica
        if not rows.query.is_sliced and not rows.ordered:
            rows = rows.order_by("pk")  # as Django's own first()
        self.alias: str = rows.db
        self.model = rows.model
        self.identity = identity_of(rows.model)
        self.width = len(self.identity.attributes)
        self.bounded = bool(rows.query.is_sliced or rows.query.distinct_fields)
        """Whether a row belongs to the queryset for the sake of the rows beside it: it is asked for as it is."""
        self._rows = rows
        self._keys = rows.values_list(*self.identity.attributes, flat=self.width == 1)

    def narrow(self, condition: Any) -> None:
        """Leave out the rows for which this is true."""
        self._keys = self._keys.exclude(condition)

    def names(self, rows: Sequence[Any], key: str) -> list[str]:
        return self.identity.names(rows, key)

    def rows(self, offset: int, size: int) -> list[Any]:
        keys = self._keys if self.bounded else self._keys[offset : offset + size]
        with committed(self.alias):
            return list(keys)

    def again(self, keys: Sequence[tuple[Any, ...]]) -> list[tuple[tuple[Any, ...], Any]]:
        """The rows that match still, read once more, of those with these keys; what bounded them has done its work."""
        rows = self._rows._chain()
        rows.query.clear_limits()
        with committed(self.alias):
            return [(self.identity.values(row), row) for row in rows.filter(self.identity.among(keys))]


@contextmanager
def committed(alias: str) -> Iterator[None]:
    """Have querysets see what is committed, where the caller's transaction only sees what was when it began.

    By the companion of Django's connection, which takes its place meanwhile, in this thread alone.
    """
    own = connections[alias]
    if is_in_memory(own) or not in_transaction(own) or not _is_snapshot(own):
        yield
        return
    connections[alias] = companion(own, engine_of(own).dialect)
    try:
        yield
    finally:
        connections[alias] = own


def _is_snapshot(connection: Any) -> bool:
    """Whether a transaction there goes on seeing what was committed at its beginning."""
    if connection.vendor == "sqlite":
        return True
    level = connection.isolation_level  # MySQL: text, None for the server's own; PostgreSQL: an enumeration
    name = getattr(level, "name", level) or "repeatable read"
    return str(name).replace("_", " ").lower() not in ("read committed", "read uncommitted")


def _check(queryset: Any) -> None:
    model, query = queryset.model, queryset.query
    if not issubclass(model, Reservable):
        raise NotSupported(
            f"{model.__name__} is not Reservable: add it to the bases, class {model.__name__}(Reservable, …), so that "
            "what is reserved can be released"
        )
    if queryset._fields is not None or not issubclass(queryset._iterable_class, ModelIterable):
        raise _refused("values() or values_list()", _NO_ROWS)
    for clause, present, reason in (
        (f"{query.combinator}()", bool(query.combinator), _NO_TABLE),
        ("an aggregate (GROUP BY)", query.group_by is not None, _NO_TABLE),
        ("select_for_update()", query.select_for_update, _NO_LOCKS),
    ):
        if present:
            raise _refused(clause, reason)


def _refused(clause: str, reason: str) -> NotSupported:
    return NotSupported(f"a queryset with {clause} cannot be reserved from: {reason}; leave it out")
