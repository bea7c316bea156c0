"""The database's own clock in Django's expressions, as the other statements have it."""

# Django has no types, and what pyright guesses of its sources is wrong.
# pyright: reportAssignmentType=false

from __future__ import annotations

from typing import Any

from django.db import models
from sqlalchemy import ColumnElement
from sqlalchemy.dialects import mysql, postgresql, sqlite

from reservable.leasing.columns import due_at_once, now

_DIALECTS = {
    "sqlite": sqlite.dialect(),
    "postgresql": postgresql.dialect(),  # type: ignore[no-untyped-call]
    "mysql": mysql.dialect(),
}


class Written(models.Func):
    """SQL that SQLAlchemy writes, without parameters."""

    output_field: Any = models.BigIntegerField()
    sql: ColumnElement[Any]

    def as_sql(self, compiler: Any, connection: Any, *_: Any, **__: Any) -> Any:
        compiled = self.sql.compile(
            dialect=_DIALECTS[connection.vendor], compile_kwargs={"literal_binds": True}
        )
        return str(compiled), ()


class DueAtOnce(Written):
    """The time now as the default of a column."""

    allowed_default = True
    sql = due_at_once()


class Now(Written):
    """The time now for comparisons: read once a statement, so that an index can be used for it."""

    sql = now()


class Moment(Written):
    """A time that the database computes."""

    def __init__(self, sql: ColumnElement[Any]) -> None:
        super().__init__()
        self.sql = sql
