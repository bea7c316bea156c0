"""How many rows there are of each kind, as a session sees them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from reservable.queue.statuses import Value
from reservable.sqlalchemy.queue.queues import MappedQueue
from reservable.sqlalchemy.taking import session_of


def status_counts(
    session: Session, queue: MappedQueue, where: Sequence[ColumnElement[bool]]
) -> dict[Value, int]:
    """How many rows have each stored value, as the caller's transaction sees it; zeros too."""
    status = queue.columns["status"]
    counting = select(status, func.count()).select_from(queue.rows).where(*where).group_by(status)
    session = session_of(session)
    with session.no_autoflush:
        rows = session.execute(counting, bind_arguments={"mapper": queue.mapper}).all()
    counts: dict[Value, int] = dict.fromkeys(queue.statuses.values, 0)
    counts.update((value, count) for value, count in rows)
    return counts
