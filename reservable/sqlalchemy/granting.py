"""The statement that finds and reserves in one go, built and compiled once for every shape of a caller's statement.

Building it takes longer than the database takes to run it. So it is remembered by what SQLAlchemy's own cache
of compiled statements goes by: the caller's statement less its values, which are filled in anew each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from reservable.backends.database.execution import TextStatement
from reservable.sqlalchemy.candidates import Candidates
from reservable.sqlalchemy.naming import name_in_sql

TOKEN = 32
"""Characters of a token."""

# The values of ours, by names that no caller's bind parameter has.
TOKENS, OWNER, LIFETIME = "reservable_tokens", "reservable_owner", "reservable_lifetime"

REMEMBERED = 256
"""Shapes that are kept for one table of reservations, the latest used."""


class Shape(NamedTuple):
    """What makes two grant statements for one statement of the caller's differ."""

    key: str
    size: int
    locking: bool
    skipped: tuple[Any, ...]


class GrantStatement(NamedTuple):
    """A grant statement, and the values that the caller's own statement had this time."""

    text: TextStatement
    callers_values: Mapping[str, Any]

    def rows(self, backend: DatabaseBackend, values: Mapping[str, Any]) -> Sequence[Any]:
        """Run it on a connection of the library's own."""
        return backend.execution.on_connection(lambda driver: self.text.rows(driver, values))  # type: ignore[no-any-return]


def grant_statement(backend: DatabaseBackend, candidates: Candidates, shape: Shape) -> GrantStatement:
    """The statement that reserves the first `shape.size` free candidates."""

    def build() -> TextStatement:
        return TextStatement(_build(backend, candidates, shape), backend.connections.dialect)

    cache_key = candidates.cache_key
    if cache_key is None:
        return GrantStatement(build(), {})
    keys = [bind.key for bind in cache_key.bindparams]
    text = None
    if not shape.skipped:  # rows to leave out make a statement that is not met again
        remembered = backend.execution.remembered
        place = (cache_key.key, candidates.identity.model, shape)
        text, keys = remembered.pop(place, None) or (build(), keys)
        remembered[place] = text, keys
        if len(remembered) > REMEMBERED:
            remembered.popitem(last=False)
    given = getattr(cache_key, "params", None) or {}  # by Select.params(), which SQLAlchemy 2.1 keeps apart
    values = [given.get(bind.key, bind.effective_value) for bind in cache_key.bindparams]
    return GrantStatement(text or build(), dict(zip(keys, values, strict=True)))


def is_joined(backend: DatabaseBackend, candidates: Candidates) -> bool:
    """Whether the statement reads other tables too; remembered, for it takes SQLAlchemy long to say."""
    if candidates.cache_key is None:
        return candidates.joined
    remembered, place = backend.execution.remembered, (candidates.cache_key.key,)
    if place not in remembered:
        remembered[place] = candidates.joined
    return bool(remembered[place])


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
    # Written out: PostgreSQL then plans a prepared statement once, and not for every number anew.
    free = free.limit(literal_column(str(shape.size)))
    if shape.locking and statements.dialect == "postgresql":
        # NO KEY UPDATE: rows that merely refer to this one can still be inserted.
        return free.with_for_update(key_share=True, skip_locked=True, of=candidates.attributes[0])
    return free.with_for_update(skip_locked=True) if shape.locking else free


def _token(size: int) -> ColumnElement[str]:
    """A token of its own for every row, cut from the text of all of them."""
    tokens: ColumnElement[str] = bindparam(TOKENS, type_=String())
    if size == 1:
        return tokens
    place = cast(func.row_number().over(), Integer) - 1
    return func.substr(tokens, place * TOKEN + 1, TOKEN)
