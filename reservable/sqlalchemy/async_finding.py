"""`finding` for asyncio: for `AsyncSession`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from sqlalchemy import Select
from sqlalchemy.util import greenlet_spawn

from reservable.finding.taking import Taken, check_limit
from reservable.sqlalchemy.choosing import Choosing
from reservable.sqlalchemy.colours import Awaited
from reservable.sqlalchemy.taking import Finding, awaited_session_of

T = TypeVar("T")

if TYPE_CHECKING:  # needs greenlet, which blocking code does without
    from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session

    AnyAsyncSession: TypeAlias = AsyncSession | async_scoped_session[Any]


@overload
async def afirst_reserved(
    session: AnyAsyncSession, statement: Select[tuple[T]], key: Any, duration: Any = 60
) -> T | None: ...
@overload
async def afirst_reserved(
    session: AnyAsyncSession,
    statement: Select[T],  # type: ignore[type-var,unused-ignore]
    key: Any,
    duration: Any = 60,
) -> T | None: ...
async def afirst_reserved(session: AnyAsyncSession, statement: Any, key: Any, duration: Any = 60) -> Any:
    """`first_reserved` for asyncio. Cancelled, it leaves no row reserved."""
    taken = await _take(session, statement, key, duration, 1)
    return taken[0].instance if taken else None


@overload
async def atake_reserved(
    session: AnyAsyncSession, statement: Select[tuple[T]], key: Any, duration: Any = 60, *, limit: int
) -> list[T]: ...
@overload
async def atake_reserved(
    session: AnyAsyncSession,
    statement: Select[T],  # type: ignore[type-var,unused-ignore]
    key: Any,
    duration: Any = 60,
    *,
    limit: int,
) -> list[T]: ...
async def atake_reserved(
    session: AnyAsyncSession, statement: Any, key: Any, duration: Any = 60, *, limit: int
) -> Any:
    """`take_reserved` for asyncio. Cancelled, it leaves no row reserved."""
    check_limit(limit)
    return [taken.instance for taken in await _take(session, statement, key, duration, limit)]


@overload
def aeach_reserved(
    session: AnyAsyncSession, statement: Select[tuple[T]], key: Any, duration: Any = 60
) -> AsyncIterator[T]: ...
@overload
def aeach_reserved(
    session: AnyAsyncSession,
    statement: Select[T],  # type: ignore[type-var,unused-ignore]
    key: Any,
    duration: Any = 60,
) -> AsyncIterator[T]: ...
async def aeach_reserved(
    session: AnyAsyncSession, statement: Any, key: Any, duration: Any = 60
) -> AsyncIterator[Any]:
    """`each_reserved` for asyncio, for `async for`."""
    rows = (await greenlet_spawn(_finding, session, statement, key, duration)).each()
    while (row := await greenlet_spawn(next, rows, None)) is not None:
        yield row


async def afirst_reserved_of(instances: Iterable[T], key: Any, duration: Any = 60) -> T | None:
    """`first_reserved_of` for asyncio."""
    choosing: Any = Choosing(key, duration, Awaited())
    return await greenlet_spawn(choosing.first, instances)


async def _take(session: Any, statement: Any, key: Any, duration: Any, limit: int) -> list[Taken]:
    def take() -> list[Taken]:
        return _finding(session, statement, key, duration).take(limit)

    return await greenlet_spawn(take)


def _finding(session: Any, statement: Any, key: Any, duration: Any) -> Finding:
    return Finding(awaited_session_of(session), statement, key, duration, Awaited())
