"""Find free rows of a statement and reserve them: for cron jobs that take the next one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from secrets import token_hex
from typing import Any, TypeVar, overload

from sqlalchemy import Select
from sqlalchemy.orm import object_session

from reservable import durations, names
from reservable.backends.base import Backend
from reservable.config import owner_label
from reservable.errors import ConfigurationError
from reservable.sqlalchemy import homes
from reservable.sqlalchemy.granting import TOKEN
from reservable.sqlalchemy.identity import must_exist, row_of
from reservable.sqlalchemy.mixin import holdings_of
from reservable.sqlalchemy.search import FIRST_BATCH, GROWTH, LAST_BATCH, Purpose
from reservable.sqlalchemy.taking import AnySession, Finding, handle_of

T = TypeVar("T")

# select(Video) is a Select[tuple[Video]] to the type checkers with SQLAlchemy 2.0, and a Select[Video] with 2.1,
# so each function has a signature for either.


@overload
def first_reserved(
    session: AnySession, statement: Select[tuple[T]], key: Any, duration: Any = 60
) -> T | None: ...
@overload
def first_reserved(
    session: AnySession,
    statement: Select[T],  # type: ignore[type-var,unused-ignore]
    key: Any,
    duration: Any = 60,
) -> T | None: ...
def first_reserved(session: AnySession, statement: Any, key: Any, duration: Any = 60) -> Any:
    """The first row of the statement that nobody has reserved for this purpose, reserved; None when there is none.

    In the statement's own order, checked against committed data at the grant, with the column values read then.
    `row.release(key)` gives back exactly this grant. The session is not flushed, committed or rolled back;
    what it has not committed is not seen.

    Raises `NotSupported` for statements that are not a select of one mapped entity, `InvalidKey`,
    `InvalidDuration`, and `BackendError` when a store fails (never None).
    """
    taken = Finding(session, statement, key, duration).take(1)
    return taken[0].instance if taken else None


@overload
def take_reserved(
    session: AnySession, statement: Select[tuple[T]], key: Any, duration: Any = 60, *, limit: int
) -> list[T]: ...
@overload
def take_reserved(
    session: AnySession,
    statement: Select[T],  # type: ignore[type-var,unused-ignore]
    key: Any,
    duration: Any = 60,
    *,
    limit: int,
) -> list[T]: ...
def take_reserved(session: AnySession, statement: Any, key: Any, duration: Any = 60, *, limit: int) -> Any:
    """Up to `limit` free rows, reserved, each by a grant of its own; fewer only when no more are free."""
    if type(limit) is not int or limit < 1:
        raise ConfigurationError(f"limit is {limit!r}: how many rows to take at most, a whole number from 1")
    return [taken.instance for taken in Finding(session, statement, key, duration).take(limit)]


@overload
def each_reserved(
    session: AnySession, statement: Select[tuple[T]], key: Any, duration: Any = 60
) -> Iterator[T]: ...
@overload
def each_reserved(
    session: AnySession,
    statement: Select[T],  # type: ignore[type-var,unused-ignore]
    key: Any,
    duration: Any = 60,
) -> Iterator[T]: ...
def each_reserved(session: AnySession, statement: Any, key: Any, duration: Any = 60) -> Any:
    """One free row after the other, each reserved when it is yielded, until none is left.

    Holds nothing but what it has yielded, and leaves the releasing to the caller; never yields a row twice.
    """
    return Finding(session, statement, key, duration).each()


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
        waiting.append((homes.located(identity, home[1]).name(values, key), instance))
    return _first_of(backend, waiting, purpose) if backend is not None else None


def _first_of(backend: Backend, waiting: list[tuple[str, Any]], purpose: Purpose) -> Any:
    deadline = purpose.deadline()
    grant = backend.acquire_first(
        [name for name, _ in waiting], token_hex(TOKEN // 2), purpose.owner, purpose.lifetime
    )
    for name, instance in waiting:
        handle = handle_of(instance, backend, name, purpose)
        if grant is not None and grant.name == name:
            handle.adopt(grant, deadline)
            return instance
        # It has tried and was refused, so it is no bystander who may release another's grant.
        holdings_of(instance).tried(handle)
    return None
