"""Find free rows of a statement and reserve them: for cron jobs that take the next one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, overload

from sqlalchemy import Select
from sqlalchemy.orm import Session, scoped_session

from reservable.finding.taking import check_limit
from reservable.sqlalchemy.choosing import Choosing
from reservable.sqlalchemy.colours import Blocking
from reservable.sqlalchemy.taking import Finding, session_of

AnySession = Session | scoped_session[Any]

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
    taken = Finding(session_of(session), statement, key, duration, Blocking()).take(1)
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
    check_limit(limit)
    return [
        taken.instance
        for taken in Finding(session_of(session), statement, key, duration, Blocking()).take(limit)
    ]


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
    return Finding(session_of(session), statement, key, duration, Blocking()).each()


def first_reserved_of(instances: Iterable[T], key: Any, duration: Any = 60) -> T | None:
    """The first of these instances whose row nobody has reserved, reserved; in their order, in batches.

    What they hold is not read again: use `first_reserved` where the row may have changed.
    """
    return Choosing(key, duration, Blocking()).first(instances)
