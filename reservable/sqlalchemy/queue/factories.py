"""The sessions that a worker is given a maker of: one is asked which database is meant, and closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session
from sqlalchemy.util import greenlet_spawn

from reservable.errors import NotSupported
from reservable.sqlalchemy.queue.calls import desk
from reservable.sqlalchemy.queue.desks import SessionDesk
from reservable.sqlalchemy.queue.queues import MappedQueue
from reservable.sqlalchemy.taking import awaited_session_of

if TYPE_CHECKING:  # needs greenlet, which blocking code does without
    from sqlalchemy.ext.asyncio import AsyncSession


def check_factory(session_factory: Any) -> None:
    """Raises `NotSupported` for what makes no sessions."""
    if not callable(session_factory):
        raise NotSupported(
            f"give a function that makes sessions, as sessionmaker(engine), not {type(session_factory).__name__}"
        )


def found(session_factory: Callable[[], Session], queue: MappedQueue) -> SessionDesk:
    """The desk of the database that its sessions write to; the session of a `scoped_session` is the caller's."""
    session: Any = session_factory()
    try:
        return desk(session, queue)
    finally:
        if isinstance(session, Session) and not hasattr(session_factory, "registry"):
            session.close()


async def afound(session_factory: Callable[[], AsyncSession], queue: MappedQueue) -> SessionDesk:
    """As `found`, for asyncio."""
    session = session_factory()
    awaited = awaited_session_of(session)
    try:
        return await greenlet_spawn(desk, awaited, queue)
    finally:
        if not hasattr(session_factory, "registry"):
            await session.close()
