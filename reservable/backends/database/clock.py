"""The database's own clock, in whole microseconds since the epoch, in every dialect.

Not `now()`: PostgreSQL's stands still inside a transaction and MySQL's has whole seconds and a time zone.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class clock(FunctionElement[int]):  # noqa: N801 - reads as the SQL function it is
    """The time now, by the server that runs the statement."""

    type = BigInteger()
    inherit_cache = True


@compiles(clock)
def _unknown(element: clock, compiler: Any, **_: Any) -> str:
    if compiler.dialect.name == "default":  # only to be read: print(statement)
        return "clock()"
    raise NotImplementedError(f"no clock for the dialect {compiler.dialect.name}")


@compiles(clock, "postgresql")
def _postgresql(element: clock, compiler: Any, **_: Any) -> str:
    # clock_timestamp() is real time; as numeric, so that no microsecond is rounded away.
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"


@compiles(clock, "mysql")
@compiles(clock, "mariadb")
def _mysql(element: clock, compiler: Any, **_: Any) -> str:
    # UTC on both sides: the session's time zone, and the hour it repeats in autumn, do not come into it.
    return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))"


@compiles(clock, "sqlite")
def _sqlite(element: clock, compiler: Any, **_: Any) -> str:
    # SQLite counts in milliseconds. 'now' stands still within one statement and is first read when the
    # statement has the write lock.
    return "(CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)"
