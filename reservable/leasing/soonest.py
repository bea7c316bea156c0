"""When there will be something to do, where there is nothing now."""

from __future__ import annotations

from sqlalchemy import BigInteger, ColumnElement, select, type_coerce

from reservable.backends.database.clock import clock
from reservable.leasing.claiming import levels
from reservable.leasing.columns import now
from reservable.leasing.desk import Desk
from reservable.leasing.queues import Queue
from reservable.queue.statuses import Status


def seconds_until_due(desk: Desk) -> float | None:
    """Until the next row is due that is not due yet, or the next lease over; None when there is none."""
    times: list[int] = []
    for priority, roles in levels(desk):
        [found] = desk.rows(select(*(_left(desk.queue, role, priority) for role in roles)))
        times += [left for left in found if left is not None]
    return max(0, min(times)) / 1_000_000 if times else None


def _left(queue: Queue, role: Status, priority: int) -> ColumnElement[int]:
    """Microseconds until the first row of this status and priority is due; found by the index at once."""
    column = queue.columns
    at = type_coerce(column["retry_at"], BigInteger())
    first = (
        select(at)
        .where(
            column["status"] == queue.statuses.value(role),
            column["priority"] == priority,
            column["retry_at"] > now(),
        )
        .order_by(column["retry_at"])
        .limit(1)
    )
    return (first.scalar_subquery() - clock()).label(role.value)
