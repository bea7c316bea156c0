"""The name of a row's reservation, computed by SQL: byte for byte what Python computes."""

# The methods of a protocol are their docstrings.
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sqlalchemy import BindParameter, ColumnElement, String, bindparam, cast, func, literal_column
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

INTEGER, UUIDS, TEXT = "integer", "uuid", "text"
"""The kinds of primary key columns that SQL can write as the same text that Python does."""

SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_CLASS = "A-Za-z0-9._~-"


class Identity(Protocol):
    """What the names of one class's rows are made of."""

    model: str
    """The first part of their names, encoded already."""

    @property
    def kinds(self) -> Sequence[str | None]:
        """The kind of each primary key column; None for one that SQL cannot write."""


def name_in_sql(
    identity: Identity, columns: Sequence[ColumnElement[Any]], key: str, prefix: str
) -> ColumnElement[str]:
    """The stored name (prefix and all) of the row with these primary key columns; the key is encoded already."""
    text: ColumnElement[str] = _text(f"{prefix}{identity.model}:")
    for place, (kind, column) in enumerate(zip(identity.kinds, columns, strict=True)):
        if place:
            text = text + _text(",")
        text = text + _part(kind, column)
    return as_name(text + _text(f":{key}"))


def _text(value: str) -> BindParameter[str]:
    """Constant text, by a name that no caller's bind parameter has."""
    return bindparam("reservable_text", value, type_=String(), unique=True)


def _part(kind: str | None, column: ColumnElement[Any]) -> ColumnElement[str]:
    if kind == INTEGER:
        return cast(column, String())
    if kind == UUIDS:
        return uuid_text(column)
    return percent_encoded(column)


class as_name(FunctionElement[str]):  # noqa: N801 - reads as the SQL function it is
    """Text to be compared with the names in the table of reservations, by bytes and through their index."""

    type = String()
    inherit_cache = True


@compiles(as_name)
def _as_name(element: as_name, compiler: Any, **options: Any) -> str:
    return str(compiler.process(element.clauses.clauses[0].self_group(), **options))


@compiles(as_name, "postgresql")
def _as_name_postgresql(element: as_name, compiler: Any, **options: Any) -> str:
    return f'({compiler.process(element.clauses.clauses[0], **options)}) COLLATE "C"'


@compiles(as_name, "mysql")
@compiles(as_name, "mariadb")
def _as_name_mysql(element: as_name, compiler: Any, **options: Any) -> str:
    return f"CONVERT({compiler.process(element.clauses.clauses[0], **options)} USING ascii) COLLATE ascii_bin"


class uuid_text(FunctionElement[str]):  # noqa: N801 - as above
    """A UUID column as canonical text, whether the database has a type for it or keeps 32 hex digits."""

    type = String()
    inherit_cache = True


@compiles(uuid_text)
def _uuid_text(element: uuid_text, compiler: Any, **options: Any) -> str:
    column = element.clauses.clauses[0]
    native = getattr(column.type, "native_uuid", False) and compiler.dialect.supports_native_uuid
    text: Any = func.lower(cast(column, String(36)))
    if not native:
        dash = _text("-")
        cuts = [
            func.substr(text, literal_column(str(start)), literal_column(str(length)))
            for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
        ]
        text = cuts[0] + dash + cuts[1] + dash + cuts[2] + dash + cuts[3] + dash + cuts[4]
    return str(compiler.process(text, **options))


class percent_encoded(FunctionElement[str]):  # noqa: N801 - as above
    """Text as `names.encode` writes it: itself where it is safe, else every other byte as %XX."""

    type = String()
    inherit_cache = True


@compiles(percent_encoded)
def _percent_unknown(element: percent_encoded, compiler: Any, **options: Any) -> str:
    if compiler.dialect.name == "default":  # only to be read: print(statement)
        return f"percent_encoded({compiler.process(element.clauses.clauses[0], **options)})"
    raise NotImplementedError(f"no names for the dialect {compiler.dialect.name}")


@compiles(percent_encoded, "postgresql")
def _percent_postgresql(element: percent_encoded, compiler: Any, **options: Any) -> str:
    text = f'(({compiler.process(element.clauses.clauses[0], **options)})::text COLLATE "C")'
    percent = (compiler.preparer._double_percents and "%%") or "%"
    encoded = (
        f"CASE WHEN c ~ '^[{_CLASS}]$' THEN c ELSE "
        f"upper(regexp_replace(encode(convert_to(c, 'UTF8'), 'hex'), '(..)', '{percent}\\1', 'g')) END"
    )
    return (
        f"CASE WHEN {text} ~ '^[{_CLASS}]*$' THEN {text} ELSE (SELECT string_agg({encoded}, '' ORDER BY n) "
        f"FROM unnest(string_to_array({text}, NULL)) WITH ORDINALITY AS characters(c, n)) END"
    )


@compiles(percent_encoded, "mysql")
@compiles(percent_encoded, "mariadb")
def _percent_mysql(element: percent_encoded, compiler: Any, **options: Any) -> str:
    column = compiler.process(element.clauses.clauses[0], **options)
    text = f"(CONVERT({column} USING utf8mb4) COLLATE utf8mb4_bin)"
    percent = (compiler.preparer._double_percents and "%%") or "%"
    group = "\\\\1" if getattr(compiler.dialect, "is_mariadb", False) else "$1"
    # Every byte as %XX, then the safe ones back: a %XX is only ever met whole, so none is made up on the way.
    encoded = f"REGEXP_REPLACE(HEX({text}), '(..)', '{percent}{group}')"
    for character in SAFE:
        encoded = f"REPLACE({encoded}, '{percent}{ord(character):02X}', '{character}')"
    return f"(CASE WHEN {text} NOT REGEXP '[^{_CLASS}]' THEN {text} ELSE {encoded} END)"


@compiles(percent_encoded, "sqlite")
def _percent_sqlite(element: percent_encoded, compiler: Any, **options: Any) -> str:
    text = compiler.process(element.clauses.clauses[0], **options)
    # By bytes: for SQLite's own functions a text ends at its first NUL.
    byte = "substr(bytes, place, 1)"
    encoded = f"CASE WHEN CAST({byte} AS TEXT) GLOB '[{_CLASS}]' THEN CAST({byte} AS TEXT) ELSE '%' || hex({byte}) END"
    return (
        f"(CASE WHEN {text} NOT GLOB '*[^{_CLASS}]*' AND length({text}) = length(CAST({text} AS BLOB)) THEN {text} "
        "ELSE (WITH RECURSIVE walk(bytes, place, done) AS ("
        f"SELECT CAST({text} AS BLOB), 1, '' "
        f"UNION ALL SELECT bytes, place + 1, done || {encoded} FROM walk WHERE place <= length(bytes)) "
        "SELECT done FROM walk ORDER BY place DESC LIMIT 1) END)"
    )
