"""The statement that finds and reserves in one go."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Executable,
    Integer,
    Select,
    String,
    bindparam,
    cast,
    exists,
    func,
    literal_column,
    select,
    true,
)

from reservable.backends.database import DatabaseBackend
from reservable.backends.database.clock import clock
from reservable.backends.database.naming import name_in_sql
from reservable.finding.search import TOKEN
from reservable.sqlalchemy.candidates import Candidates
from reservable.sqlalchemy.shapes import Shaped, shaped

# The values of ours, by names that no caller's bind parameter has.
TOKENS, OWNER, LIFETIME = "reservable_tokens", "reservable_owner", "reservable_lifetime"


class Shape(NamedTuple):
    """What makes two grant statements for one statement of the caller's differ."""

    key: str
    size: int
    locking: bool
    skipped: tuple[Any, ...]


def grant_statement(backend: DatabaseBackend, candidates: Candidates, shape: Shape) -> Shaped:
    """The statement that reserves the first `shape.size` free candidates."""
    place = None if shape.skipped else (candidates.identity.model, backend.table, backend.prefix, shape)
    return shaped(backend.connections, candidates, place, lambda: _build(backend, candidates, shape))


def _build(backend: DatabaseBackend, candidates: Candidates, shape: Shape) -> Executable:
    statements = backend.statements
    candidate = _free(backend, candidates, shape).subquery("candidate")
    name = name_in_sql(candidates.identity, list(candidate.c), shape.key, backend.prefix)
    if statements.dialect == "mysql":
        return select(name).select_from(candidate)
    now = statements.now()
    until = now.c.now + bindparam(LIFETIME, type_=BigInteger())
    owner = bindparam(OWNER, type_=String())
    rows = select(name, _token(shape.size), owner, now.c.now, now.c.now, until)
    return statements.granting(rows.select_from(candidate.join(now, true())))


def _free(backend: DatabaseBackend, candidates: Candidates, shape: Shape) -> Select[Any]:
    """The keys of the first rows that nobody has reserved."""
    statements = backend.statements
    held = statements.table.alias("held")
    name = name_in_sql(candidates.identity, candidates.attributes, shape.key, backend.prefix)
    # The clock is read once: a little later a row can only be freer than it looked.
    now = select(clock()).scalar_subquery()
    taken = exists().where(held.c.name == name, held.c.until > now).correlate_except(held)
    free = candidates.without(candidates.keys(), shape.skipped).where(~taken)
    # Written out: PostgreSQL then plans a prepared statement once, and not for every number anew. With an OFFSET,
    # which SQLAlchemy would write for SQLite with a parameter of its own, by a name that a caller may have used.
    free = free.limit(literal_column(str(shape.size))).offset(literal_column("0"))
    if shape.locking and statements.dialect == "postgresql":
        # NO KEY UPDATE: rows that merely refer to this one can still be inserted.
        return free.with_for_update(key_share=True, skip_locked=True, of=candidates.attributes[0])
    return free.with_for_update(skip_locked=True) if shape.locking else free


def _token(size: int) -> ColumnElement[str]:
    """A token of its own for every row, cut from the text of all of them."""
    tokens: ColumnElement[str] = bindparam(TOKENS, type_=String())
    if size == 1:
        return tokens
    one, length = literal_column("1", Integer), literal_column(str(TOKEN), Integer)
    place = cast(func.row_number().over(), Integer) - one
    return func.substr(tokens, place * length + one, length)
