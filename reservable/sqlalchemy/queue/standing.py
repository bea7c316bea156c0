"""How the rows of a queue stand: what is due, running, over, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.orm import Session

from reservable.leasing import statements
from reservable.leasing.columns import now
from reservable.leasing.queues import Queue
from reservable.queue.moves import CLAIM, If
from reservable.queue.statuses import Status, Value
from reservable.sqlalchemy.queue.queues import MappedQueue
from reservable.sqlalchemy.taking import session_of


def due(queue: Queue) -> ColumnElement[bool]:
    """Rows that can be claimed now."""
    return statements.movable(queue, CLAIM)


def running(queue: Queue) -> ColumnElement[bool]:
    """Rows whose lease is not over."""
    return and_(_is_running(queue), queue.columns["retry_at"] > now())


def expired(queue: Queue) -> ColumnElement[bool]:
    """Rows that are running, and whose lease is over."""
    return and_(_is_running(queue), queue.columns["retry_at"] <= now())


def counts(session: Session, queue: MappedQueue, where: Sequence[ColumnElement[bool]]) -> dict[Value, int]:
    """How many rows have each stored value, as the caller's transaction sees it; zeros too."""
    status = queue.columns["status"]
    counting = select(status, func.count()).select_from(queue.rows).where(*where).group_by(status)
    session = session_of(session)
    with session.no_autoflush:
        rows = session.execute(counting, bind_arguments={"mapper": queue.mapper}).all()
    found: dict[Value, int] = dict.fromkeys(queue.statuses.values, 0)
    found.update((value, count) for value, count in rows)
    return found


def _is_running(queue: Queue) -> ColumnElement[bool]:
    return statements.in_status(queue, Status.RUNNING, If.ANY)
