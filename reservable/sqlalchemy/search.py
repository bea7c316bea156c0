"""How free rows are found and reserved: beside the table of reservations, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_hex
from typing import Any

from reservable.backends.database import DatabaseBackend
from reservable.backends.database.connections import pause
from reservable.backends.database.verbs import Execute
from reservable.errors import BackendError
from reservable.finding.search import TOKEN, Found, Key, Purpose
from reservable.grants import MICROSECOND
from reservable.sqlalchemy.candidates import Candidates
from reservable.sqlalchemy.granting import LIFETIME, OWNER, TOKENS, Shape, grant_statement
from reservable.sqlalchemy.reading import steadily
from reservable.sqlalchemy.shapes import is_joined

LOOKS, LOOK_AGAIN = 5, 0.1
"""How often, and after how many seconds, what was cut off is looked for."""

AT_ONCE = 1_000
"""Rows that one statement reserves: all of them are locked until it ends."""


class Beside:
    """The table of reservations is in the model's own database: one statement finds and reserves.

    An anti-join leaves out what is reserved, and workers skip the rows that others are just reserving (SKIP
    LOCKED, the weakest kind that excludes itself, on the model's own table). A row locked by a transaction that
    has nothing to do with us is free all the same, so before the answer is "none" it looks once more without.
    """

    def __init__(self, backend: DatabaseBackend, candidates: Candidates, purpose: Purpose) -> None:
        self._backend = backend
        self._candidates = candidates
        self._purpose = purpose
        self._skipped: set[Key] = set()
        self._lockable = True
        self._asked: set[str] = set()

    def skip(self, key: Key) -> None:
        self._skipped.add(key)

    def restart(self) -> None:
        """Nothing to do: every look is a new one."""

    def reserve(self, limit: int) -> list[Found]:
        # A join may repeat a row, and one statement cannot insert it twice.
        limit = 1 if limit > 1 and self._is_joined() else min(limit, AT_ONCE)
        locking = self._locks()
        while True:
            deadline = self._purpose.deadline()
            tokens = self._asked = {token_hex(TOKEN // 2) for _ in range(limit)}
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

    def undo(self) -> None:
        for _ in range(LOOKS):
            rows = steadily(self._granted_to_asked, self._backend.connections.dialect, self._backend)
            if rows:
                for row in rows:
                    self._backend.release(self._backend.verbs.bare(row[0]), row[1])
                return
            # The server may be at it still, though nobody listens to it any more.
            pause(self._backend.connections.dialect, LOOK_AGAIN)

    def _granted_to_asked(self) -> Sequence[Any]:
        return self._backend.execution(Execute("by_token", {"tokens": list(self._asked)})).rows

    def _locks(self) -> bool:
        kind = self._backend.statements.dialect
        # MariaDB cannot be told which of a statement's tables to lock.
        return self._lockable and (kind == "postgresql" or (kind == "mariadb" and not self._is_joined()))

    def _is_joined(self) -> bool:
        return is_joined(self._backend.connections, self._candidates)

    def _ask(self, tokens: set[str], *, locking: bool) -> Sequence[Any]:
        """What the grant statement returns; asked again, what it has granted already."""
        shape = Shape(self._purpose.key, len(tokens), locking, tuple(self._skipped))
        statement = grant_statement(self._backend, self._candidates, shape)
        values = {
            TOKENS: "".join(tokens),
            OWNER: self._purpose.owner,
            LIFETIME: self._purpose.lifetime // MICROSECOND,
        }
        sent = False

        def work() -> Sequence[Any]:
            nonlocal sent
            if sent:
                # A reply was lost, or a deadlock undone: what did arrive carries our tokens.
                rows = self._granted_to_asked()
                if rows:
                    return rows
            sent = True
            if self._backend.statements.dialect == "mysql":
                return self._one_by_one(statement.rows(self._backend.connections, values), list(tokens))
            return statement.rows(self._backend.connections, values)

        return steadily(work, self._backend.connections.dialect, self._backend)

    def _one_by_one(self, names: Sequence[Any], tokens: list[str]) -> list[Any]:
        """MySQL cannot say what an INSERT ... SELECT inserted, so each name is asked for by itself."""
        rows: list[Any] = []
        for (stored,) in names:
            name = self._backend.verbs.bare(stored)
            grant = self._backend.acquire(name, tokens[-1], self._purpose.owner, self._purpose.lifetime)
            if grant is not None:
                tokens.pop()
                rows.append((stored, grant.token, "", grant.fence, grant.since, grant.until))
            else:
                rows.append((stored, "", "", 0, 0, 0))
        return rows


def _cannot_be_locked(error: BackendError) -> bool:
    """Whether PostgreSQL refuses to lock such rows: of a subquery that groups, of an outer join's other side.

    feature_not_supported, in its appendix "Error Codes".
    """
    original = getattr(error.__cause__, "orig", error.__cause__)
    return (getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)) == "0A000"
