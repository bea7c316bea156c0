"""Rows of the queues: put there, and looked at."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
from sqlalchemy.orm import Session

from tests.sqlalchemy.queue.models import Task


def added(session: Session, *rows: Any) -> list[int]:
    session.add_all(rows)
    session.commit()
    return [row.id for row in rows]


def states(session: Session, model: type[Any] = Task) -> dict[int, tuple[str, int]]:
    """Status and attempts of every row, as they are now."""
    session.rollback()
    found = {
        row[0]: (row[1], row[2]) for row in session.execute(select(model.id, model.status, model.attempts))
    }
    session.rollback()
    return found


def makers(session: AsyncSession) -> async_sessionmaker[AsyncSession]:
    """What an asyncio worker makes its sessions with."""
    return async_sessionmaker(session.bind, expire_on_commit=False)


async def async_added(session: AsyncSession, *rows: Any) -> list[int]:
    return await session.run_sync(added, *rows)


async def async_states(session: AsyncSession, model: type[Any] = Task) -> dict[int, tuple[str, int]]:
    return await session.run_sync(states, model)
