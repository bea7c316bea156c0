"""The table of reservations: one row a name, whole microseconds for times, bytes for comparing names."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, MetaData, String, Table
from sqlalchemy.dialects import mysql, postgresql

DEFAULT_TABLE = "reservations"

NAME_LENGTH = 64 + 3 * 255 + 2
"""A prefix, three encoded parts and two colons: the longest name there is."""

TOKEN_LENGTH = 64
OWNER_LENGTH = 255

# Names and tokens are compared byte for byte, whatever collation the database has by default: a server that
# folds case would make one reservation out of two.
_EXACT = {"charset": "ascii", "collation": "ascii_bin"}


def _exact(length: int) -> String:
    return (
        String(length)
        .with_variant(postgresql.VARCHAR(length, collation="C"), "postgresql")
        .with_variant(mysql.VARCHAR(length, **_EXACT), "mysql", "mariadb")
    )


def reservations_table(
    metadata: MetaData | None = None, *, name: str = DEFAULT_TABLE, schema: str | None = None
) -> Table:
    """The table of reservations in `metadata`, for migration tools and `create_all`.

    The library makes and uses the table by itself; this is for projects whose migrations own every table:
    `reservations_table(Base.metadata)` beside the models, once, makes Alembic see it.
    """
    return Table(
        name,
        MetaData() if metadata is None else metadata,
        Column("name", _exact(NAME_LENGTH), primary_key=True),
        Column("token", _exact(TOKEN_LENGTH), nullable=False),
        Column("owner", String(OWNER_LENGTH), nullable=False),
        Column("fence", BigInteger, nullable=False),
        Column("since", BigInteger, nullable=False),
        Column("until", BigInteger, nullable=False),
        schema=schema,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mariadb_engine="InnoDB",
        mariadb_charset="utf8mb4",
        sqlite_with_rowid=False,
        keep_existing=True,
    )
