"""The types of a queue's columns, the same for every database, and its clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Dialect, String, Text
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import DontWrapMixin
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import TypeDecorator, TypeEngine

from reservable.backends.database.clock import clock
from reservable.backends.database.schema import OWNER_LENGTH
from reservable.errors import InvalidDuration
from reservable.grants import MICROSECOND, utc
from reservable.queue.failures import Entry, dumped, read

STATE = ("status", "retry_at", "lease_token", "leased_by", "attempts", "errors", "finished_at", "step")
"""The attributes that only the queue writes."""

RESERVED = (*STATE, "priority")
"""The attributes that a worker cannot set along with its own."""

_EPOCH = utc(0)


class NaiveTime(InvalidDuration, DontWrapMixin):
    """A datetime without a time zone: it could mean two moments, or none."""


class Instant(TypeDecorator[datetime]):
    """An aware datetime in UTC; whole microseconds since the epoch in the database, which no time zone moves."""

    impl = BigInteger
    cache_ok = True
    should_evaluate_none = True  # None is NULL, and not the server's default

    def process_bind_param(self, value: Any, dialect: Dialect) -> int | None:  # noqa: ARG002
        return None if value is None else microseconds(value)

    def process_literal_param(self, value: Any, dialect: Dialect) -> str:
        return str(self.process_bind_param(value, dialect))

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else utc(value)

    def coerce_compared_value(self, op: Any, value: Any) -> TypeEngine[Any]:  # noqa: ARG002
        return self if isinstance(value, datetime) else self.impl_instance


class Errors(TypeDecorator[list[Entry]]):
    """The newest failures as a list of dicts; JSON in plain ASCII in the database, NULL where there are none."""

    impl = Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        return dumped(value) if value else None

    def process_result_value(self, value: Any, dialect: Dialect) -> list[Entry]:  # noqa: ARG002
        return read(value)


class Worker(TypeDecorator[str]):
    """Names of people and hosts in any language, whatever the character set of the database."""

    impl = String(OWNER_LENGTH).with_variant(
        mysql.VARCHAR(OWNER_LENGTH, charset="utf8mb4"), "mysql", "mariadb"
    )
    cache_ok = True


class due_at_once(clock):  # noqa: N801 - as `clock`
    """The time now as a default of a column, which has to stand in parentheses."""

    inherit_cache = True


@compiles(due_at_once)
def _in_parentheses(element: due_at_once, compiler: Any, **options: Any) -> str:  # noqa: ARG001
    return f"({compiler.process(clock(), **options)})"


class now(clock):  # noqa: N801 - as `clock`
    """The time now for comparisons: read once a statement, so that an index can be used for it."""

    inherit_cache = True


@compiles(now)
def _read_once(element: now, compiler: Any, **options: Any) -> str:  # noqa: ARG001
    time = compiler.process(clock(), **options)
    # To PostgreSQL its clock is another time in every row, and to MySQL a subquery is none that it knows beforehand.
    return f"(SELECT {time})" if compiler.dialect.name == "postgresql" else time


def microseconds(moment: Any) -> int:
    """Microseconds since the epoch. Raises `InvalidDuration` for a naive datetime, and for what is none."""
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise NaiveTime(f"{moment!r} is no aware datetime: add an offset, or tzinfo=UTC")
    return (moment.astimezone(UTC) - _EPOCH) // MICROSECOND


def span(duration: timedelta) -> int:
    """The microseconds of a duration."""
    return duration // MICROSECOND
