"""One call of a verb of a session: its database is found, and its arguments are about a mapped class."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.util import greenlet_spawn

from reservable.errors import ConfigurationError, NotSupported
from reservable.leasing import calls
from reservable.leasing.asked import Claim, Start
from reservable.leasing.async_lease import AsyncLease
from reservable.leasing.lease import Lease
from reservable.sqlalchemy.queue.desks import SessionDesk, desk_of
from reservable.sqlalchemy.queue.queues import MappedQueue
from reservable.sqlalchemy.taking import awaited_session_of, session_of

if TYPE_CHECKING:  # it cannot be had without greenlet
    from sqlalchemy.ext.asyncio import AsyncSession

T = TypeVar("T")


def desk(session: Session, queue: MappedQueue) -> SessionDesk:
    """The desk of the session's database."""
    return desk_of(queue, session_of(session))


async def awaited(verb: Callable[..., T], session: AsyncSession, *arguments: Any) -> T:
    """What a verb for blocking code returns, in a greenlet."""
    return await greenlet_spawn(verb, awaited_session_of(session), *arguments)


def leases(session: Session, queue: MappedQueue, asked: Claim | Start, **options: bool) -> list[Lease]:
    """The leases of what was asked for."""
    return calls.leases(partial(desk, session, queue), asked, **options)


async def aleases(
    session: AsyncSession, queue: MappedQueue, asked: Claim | Start, **options: bool
) -> list[AsyncLease]:
    """`leases` for asyncio."""
    find = partial(desk, awaited_session_of(session), queue)
    return await calls.aleases(greenlet_spawn, find, asked, **options)


def claim(queue: MappedQueue, limit: int, where: Any, worker: str | None, step: str | None) -> Claim:
    """The next rows, as a caller asks for them."""
    return Claim(queue, limit, conditions(queue, where), worker, step)


def conditions(queue: MappedQueue, where: Any) -> tuple[Any, ...]:
    """What the rows have to match beside. Raises `ConfigurationError` and `NotSupported` for what is not about a row."""
    if where is None:
        return ()
    if not (isinstance(where, ClauseElement | bool) or hasattr(where, "__clause_element__")):
        raise ConfigurationError(f"where is {where!r}: give SQL about the row, as Video.kind == 'news'")
    clause: Any = getattr(where, "__clause_element__", lambda: where)()
    # What it would add to the FROM of a SELECT, which only SQLAlchemy itself asks: subqueries add nothing.
    if not {*getattr(clause, "_from_objects", ())} <= {*queue.mapper.tables, queue.mapper.persist_selectable}:
        raise NotSupported(
            "where names another table, which would give a row once for each of its partners: ask by exists(), or by any() "
            "or has() of a relationship"
        )
    return (where,)
