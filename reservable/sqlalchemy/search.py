"""How free rows are found and reserved: beside the table of reservations, in one statement.

This search and the one in batches (`batches`) answer one question, `reserve(n)`: up to n more rows in the
statement's order, each with its grant; none when no free row is left. Whether the rows still match is for the
caller to look at again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from datetime import timedelta
from secrets import token_hex
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    String,
    cast,
    exists,
    func,
    literal,
    select,
    true,
)

from reservable.backends.base import Backend
from reservable.backends.database import DatabaseBackend
from reservable.backends.database.clock import clock
from reservable.backends.database.statements import Statements
from reservable.errors import BackendError
from reservable.grants import MICROSECOND, Grant
from reservable.sqlalchemy.candidates import Candidates
from reservable.sqlalchemy.naming import name_in_sql
from reservable.sqlalchemy.reading import Reading

log = logging.getLogger("reservable")

Key = tuple[Any, ...]

TOKEN = 32
"""Characters of a token."""

FIRST_BATCH, GROWTH, LAST_BATCH = 100, 10, 10_000

AT_ONCE = 1_000
"""Rows that one statement reserves: all of them are locked until it ends."""


class Found(NamedTuple):
    """A row that was free and is ours now, until `deadline` on the monotonic clock."""

    key: Key
    grant: Grant
    deadline: float


class Purpose(NamedTuple):
    """What the rows are reserved for."""

    key: str
    owner: str
    lifetime: timedelta

    def deadline(self) -> float:
        """The end of a lifetime whose request is sent now."""
        return time.monotonic() + self.lifetime.total_seconds()


def give_back(backend: Backend, found: Iterable[Found]) -> None:
    """Release what nobody will be told of, because of an error that is under way."""
    for one in found:
        try:
            backend.release(one.grant.name, one.grant.token)
        except BackendError as trouble:
            log.warning("the release of %s failed: %s", one.grant.name, trouble)


class Beside:
    """The table of reservations is in the model's own database: one statement finds and reserves.

    An anti-join leaves out what is reserved, and workers skip the rows that others are just reserving (SKIP
    LOCKED, the weakest kind that excludes itself, on the model's own table). A row locked by a transaction that
    has nothing to do with us is free all the same, so before the answer is "none" it looks once more without.
    """

    def __init__(
        self, backend: DatabaseBackend, candidates: Candidates, purpose: Purpose, reading: Reading
    ) -> None:
        self._backend = backend
        self._candidates = candidates
        self._purpose = purpose
        self._reading = reading
        self._skipped: set[Key] = set()
        self._lockable = True

    def skip(self, key: Key) -> None:
        """Do not come back to this row."""
        self._skipped.add(key)

    def restart(self) -> None:
        """Every look is a new one."""

    def reserve(self, limit: int) -> list[Found]:
        # A join may repeat a row, and one statement cannot insert it twice.
        limit = 1 if self._candidates.joined else min(limit, AT_ONCE)
        locking = self._locks()
        while True:
            deadline = self._purpose.deadline()
            tokens = {token_hex(TOKEN // 2) for _ in range(limit)}
            try:
                rows = self._ask(tokens, locking=locking)
            except BackendError as error:
                if not (locking and _cannot_be_locked(error)):
                    raise
                self._lockable = locking = False
                continue
            granted = (self._backend.verbs.granted([row], tokens) for row in rows)
            found = [
                Found(self._candidates.key(one.name), one, deadline) for one in granted if one is not None
            ]
            if found:
                return found
            if not rows:
                if not locking:
                    return []
                locking = False
            # Else somebody else was quicker; their reservation is there for the next look to see.

    def _locks(self) -> bool:
        kind = self._backend.statements.dialect
        # MariaDB cannot be told which of a statement's tables to lock.
        return self._lockable and (
            kind == "postgresql" or (kind == "mariadb" and not self._candidates.joined)
        )

    def _ask(self, tokens: set[str], *, locking: bool) -> list[Any]:
        statements = self._backend.statements
        candidate = self._free(statements, len(tokens), locking=locking).subquery("candidate")
        name = name_in_sql(
            self._candidates.identity, list(candidate.c), self._purpose.key, self._backend.prefix
        )
        sent = False

        def work(connection: Connection) -> list[Any]:
            nonlocal sent
            if sent:
                # A reply was lost, or a deadlock undone: what did arrive carries our tokens.
                rows = list(connection.execute(statements.by_token, {"tokens": list(tokens)}))
                if rows:
                    return rows
            sent = True
            if statements.dialect == "mysql":
                return self._one_by_one(connection, select(name).select_from(candidate), tokens)
            return list(
                connection.execute(statements.granting(self._rows(statements, candidate, name, tokens)))
            )

        return self._reading(work, backend=self._backend)

    def _free(self, statements: Statements, limit: int, *, locking: bool) -> Select[Any]:
        """The keys of the first rows that nobody has reserved."""
        candidates = self._candidates
        held = statements.table.alias("held")
        name = name_in_sql(
            candidates.identity, candidates.attributes, self._purpose.key, self._backend.prefix
        )
        taken = exists().where(held.c.name == name, held.c.until > clock()).correlate_except(held)
        free = candidates.without(candidates.keys(), list(self._skipped)).where(~taken).limit(limit)
        if locking and statements.dialect == "postgresql":
            # NO KEY UPDATE: rows that merely refer to this one can still be inserted.
            return free.with_for_update(key_share=True, skip_locked=True, of=candidates.attributes[0])
        return free.with_for_update(skip_locked=True) if locking else free

    def _rows(
        self, statements: Statements, candidate: Any, name: ColumnElement[str], tokens: set[str]
    ) -> Select[Any]:
        now = statements.now()
        secrets = literal("".join(tokens), String())
        if len(tokens) == 1:
            token: ColumnElement[str] = secrets
        else:
            place = cast(func.row_number().over(), Integer) - 1
            token = func.substr(secrets, place * TOKEN + 1, TOKEN)
        until = now.c.now + literal(self._purpose.lifetime // MICROSECOND, BigInteger())
        owner = literal(self._purpose.owner, String())
        return select(name, token, owner, now.c.now, now.c.now, until).select_from(
            candidate.join(now, true())
        )

    def _one_by_one(self, connection: Connection, names: Select[Any], tokens: set[str]) -> list[Any]:
        """MySQL cannot say what an INSERT ... SELECT inserted, so each name is asked for by itself."""
        spare, rows = list(tokens), []
        for (stored,) in connection.execute(names).all():
            name = self._backend.verbs.bare(stored)
            grant = self._backend.acquire(name, spare[-1], self._purpose.owner, self._purpose.lifetime)
            if grant is not None:
                spare.pop()
                rows.append((stored, grant.token, "", grant.fence, grant.since, grant.until))
            else:
                rows.append((stored, "", "", 0, 0, 0))
        return rows


def _cannot_be_locked(error: BackendError) -> bool:
    """Whether PostgreSQL refuses to lock such rows: of a subquery that groups, of an outer join's other side.

    feature_not_supported, in its appendix "Error Codes".
    """
    original = getattr(error.__cause__, "orig", None)
    return (getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)) == "0A000"
