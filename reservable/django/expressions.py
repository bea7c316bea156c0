"""Which rows are reserved, as a condition for querysets on the database of the reservations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from django.db import models
from sqlalchemy import Dialect, Uuid, exists, literal_column, select
from sqlalchemy.types import NullType

from reservable.backends.database.clock import clock
from reservable.backends.database.naming import UUIDS, name_in_sql
from reservable.django.backend import DjangoBackend
from reservable.django.homes import StandIn, store_of
from reservable.django.identity import RowIdentity, identity_of
from reservable.errors import NotSupported


class Ours(NamedTuple):
    """Grants that do not count for the rows of this model and the key."""

    model: str
    key: str
    fences: Sequence[int]


_ours: ContextVar[Ours | None] = ContextVar("reservable_ours", default=None)


@contextmanager
def without(row: RowIdentity, key: str, fences: Sequence[int]) -> Iterator[None]:
    """Have querysets that are run here see rows as if these grants were not there; the key is encoded already."""
    before = _ours.set(Ours(row.model, key, fences))
    try:
        yield
    finally:
        _ours.reset(before)


class IsReserved(models.Func):
    """True for the rows of the outer query that are reserved now; for `filter` and `annotate`.

    The columns of the primary key are Django's, the rest is the SQL of the other statements.
    """

    output_field: Any = models.BooleanField()

    def __init__(self, *columns: Any, model: Any, key: str) -> None:
        super().__init__(*columns)
        self.model, self.key = model, key

    def as_sql(self, compiler: Any, connection: Any, *_: Any, **__: Any) -> Any:
        row, backend = identity_of(self.model), _table_of(self.model)
        if connection.alias != backend.alias:
            raise NotSupported(
                f"reserved() and unreserved() join the table of reservations, which is in the database "
                f"{backend.alias!r}, and this query goes to {connection.alias!r}: use first_reserved() and "
                "is_reserved(), which work across databases"
            )
        columns = [compiler.compile(column)[0] for column in self.get_source_expressions()]
        native = connection.features.has_native_uuid_field
        types = [Uuid(native_uuid=native) if kind == UUIDS else NullType() for kind in row.kinds]
        held = backend.table.alias("reservable_held")
        name = name_in_sql(
            row,
            [literal_column(text, type_) for text, type_ in zip(columns, types, strict=True)],
            self.key,
            backend.prefix,
        )
        now = select(clock()).scalar_subquery()
        taken: Any = select(literal_column("1")).where(held.c.name == name, held.c.until > now)
        ours = _ours.get()
        if ours is not None and (ours.model, ours.key) == (row.model, self.key):
            taken = taken.where(held.c.fence.not_in(ours.fences))
        return _written(exists(taken), backend), ()


def _written(condition: Any, backend: DjangoBackend) -> str:
    backend.execution.prepared()  # which asks the server for its version
    dialect: Dialect = backend.lender.dialect
    text = str(condition.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
    # Django's cursors take every % for the beginning of a value, and halve the double ones.
    return text.replace("%", "%%") if dialect.paramstyle == "qmark" else text


def is_reserved(queryset: Any, key: str) -> Any:
    """The condition for this queryset's rows; the key is encoded already.

    Raises `NotSupported` where SQL cannot tell.
    """
    model = queryset.model
    identity, backend = identity_of(model), store_of(model).given
    if isinstance(backend, StandIn):
        held = [identity.key(holder.name) for holder in backend.list(f"{identity.model}:*:{key}")]
        return identity.among(held)
    _table_of(model)
    if not identity.in_sql:
        fields = ", ".join(type(field).__name__ for field in identity.fields)
        raise NotSupported(
            f"SQL cannot compute the names of {model.__name__}'s reservations from its primary key ({fields}): integers, "
            "UUIDs and text can; first_reserved() and is_reserved() work with every type"
        )
    return IsReserved(*map(models.F, identity.attributes), model=model, key=key)


def _table_of(model: Any) -> DjangoBackend:
    backend = store_of(model).given
    if not isinstance(backend, DjangoBackend):
        raise NotSupported(
            f"reserved() and unreserved() are SQL, and reservations of {model.__name__} live in {backend!r}: keep them "
            "in the project's database, or use first_reserved() and is_reserved(), which work with every store"
        )
    return backend
