"""Find free rows of a statement and reserve them: for cron jobs that take the next one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from secrets import token_hex
from typing import Any, TypeVar

from sqlalchemy import Select, inspect
from sqlalchemy.orm import Session, object_session, scoped_session

from reservable import durations, names
from reservable.backends.base import Backend
from reservable.backends.database import DatabaseBackend
from reservable.config import owner_label
from reservable.errors import NotSupported
from reservable.handles import Reservation
from reservable.sqlalchemy import homes, reader
from reservable.sqlalchemy.candidates import Candidates
from reservable.sqlalchemy.identity import must_exist, row_of
from reservable.sqlalchemy.mixin import holdings_of
from reservable.sqlalchemy.reading import Reading
from reservable.sqlalchemy.search import FIRST_BATCH, GROWTH, LAST_BATCH, TOKEN, Beside, Found, InBatches, Purpose

T = TypeVar("T")
AnySession = Session | scoped_session[Any]


def first_reserved(session: AnySession, statement: Select[tuple[T]], key: Any, duration: Any = 60) -> T | None:
    """The first row of the statement that nobody has reserved for this purpose, reserved; None when there is none.

    In the statement's own order, checked against committed data at the grant, with the column values read then.
    `row.release(key)` gives back exactly this grant. The session is not flushed, committed or rolled back;
    what it has not committed is not seen.

    Raises `NotSupported` for statements that are not a select of one mapped entity, `InvalidKey`,
    `InvalidDuration`, and `BackendError` when a store fails (never None).
    """
    found = _Finding(session, statement, key, duration).take(1)
    return found[0] if found else None


def take_reserved(
    session: AnySession, statement: Select[tuple[T]], key: Any, duration: Any = 60, *, limit: int
) -> list[T]:
    """Up to `limit` free rows, reserved, each by a grant of its own; fewer only when no more are free."""
    if type(limit) is not int or limit < 1:
        raise ValueError(f"limit is {limit!r}: how many rows to take at most, a whole number from 1")
    return _Finding(session, statement, key, duration).take(limit)


def each_reserved(session: AnySession, statement: Select[tuple[T]], key: Any, duration: Any = 60) -> Iterator[T]:
    """One free row after the other, each reserved when it is yielded, until none is left.

    Holds nothing but what it has yielded, and leaves the releasing to the caller; never yields a row twice.
    """
    finding: _Finding = _Finding(session, statement, key, duration)
    return finding.each()


def first_reserved_of(instances: Iterable[T], key: Any, duration: Any = 60) -> T | None:
    """The first of these instances whose row nobody has reserved, reserved; in their order, in batches.

    What they hold is not read again: use `first_reserved` where the row may have changed.
    """
    lifetime, encoded = durations.lifetime(duration), names.plain_name(key)
    purpose = Purpose(encoded, owner_label(), lifetime)
    waiting: list[tuple[str, Any]] = []
    backend: Backend | None = None
    source: Any = None
    size = FIRST_BATCH
    for instance in instances:
        must_exist(instance)
        identity, values = row_of(instance)
        home = (identity.mapper, object_session(instance))
        if waiting and (home != source or len(waiting) >= size):
            assert backend is not None
            won = _first_of(backend, waiting, purpose)
            if won is not None:
                return won  # type: ignore[no-any-return]
            waiting, size = [], min(size * GROWTH, LAST_BATCH)
        if home != source:
            source, backend = home, homes.backend_of(*home)
        waiting.append((identity.name(values, key), instance))
    return _first_of(backend, waiting, purpose) if backend is not None else None


def _first_of(backend: Backend, waiting: list[tuple[str, Any]], purpose: Purpose) -> Any:
    deadline = purpose.deadline()
    grant = backend.acquire_first(
        [name for name, _ in waiting], token_hex(TOKEN // 2), purpose.owner, purpose.lifetime
    )
    if grant is None:
        return None
    instance = next(instance for name, instance in waiting if name == grant.name)
    _adopt(instance, backend, purpose, Found((), grant, deadline))
    return instance


def _adopt(instance: Any, backend: Backend, purpose: Purpose, found: Found) -> None:
    """Make the instance the holder of the grant."""
    handle = Reservation(
        backend, found.grant.name, purpose.lifetime, owner=purpose.owner, ledger=holdings_of(instance)
    )
    handle.adopt(found.grant, found.deadline)


class _Finding:
    """One call: the statement, the purpose, and the search that suits the store."""

    def __init__(self, session: AnySession, statement: Any, key: Any, duration: Any) -> None:
        if isinstance(session, scoped_session):
            session = session()
        if not isinstance(session, Session):
            raise NotSupported(f"give a SQLAlchemy Session, not {type(session).__name__}")
        self.purpose = Purpose(names.plain_name(key), owner_label(), durations.lifetime(duration))
        self.session = session
        self.candidates = Candidates(statement)
        mapper = self.candidates.mapper
        self.backend = homes.backend_of(mapper, session)
        engine = homes.engine_of(mapper, session)
        self.reading = Reading(session, mapper, engine)
        self.search: Beside | InBatches
        if (
            isinstance(self.backend, DatabaseBackend)
            and homes.same_database(self.backend, engine)
            and self.candidates.identity.in_sql
            and not self.candidates.bounded
            and not self.candidates.distinct
        ):
            self.search = Beside(self.backend, self.candidates, self.purpose, self.reading)
        else:
            self.search = InBatches(self.backend, self.candidates, self.purpose, self.reading)

    def take(self, limit: int) -> list[Any]:
        """Up to `limit` rows, reserved and in the caller's session."""
        taken: list[Any] = []
        while len(taken) < limit:
            found = self.search.reserve(limit - len(taken))
            if not found:
                break
            taken += self._bring(found)
        return taken

    def each(self) -> Iterator[Any]:
        """Row after row; when the end is reached, one more look from the front for what has become free."""
        anything = True
        while anything:
            anything = False
            while taken := self.take(1):
                anything = True
                yield taken[0]
                self.search.skip(tuple(inspect(taken[0]).key[1]))
            self.search.restart()

    def _bring(self, found: list[Found]) -> list[Any]:
        """The rows that still match, now that nobody else works on them; the others are given back."""
        missing = {one.key: one for one in found}
        try:
            statement = self.candidates.again(list(missing))
            rows = self.reading(lambda connection: reader.load(self.session, connection, statement))
            brought = []
            for instance in rows:
                one = missing.get(tuple(inspect(instance).key[1]))
                if one is not None and time.monotonic() < one.deadline:
                    _adopt(instance, self.backend, self.purpose, one)
                    del missing[one.key]
                    brought.append(instance)
            return brought
        finally:
            for one in missing.values():
                self.search.skip(one.key)
                self.backend.release(one.grant.name, one.grant.token)
