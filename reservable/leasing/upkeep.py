"""Looking at a whole queue, and keeping it small."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete

from reservable import durations
from reservable.leasing import statements
from reservable.leasing.burying import BURIED_AT_ONCE, bury
from reservable.leasing.columns import now, span
from reservable.leasing.desk import Desk
from reservable.leasing.queues import Queue
from reservable.queue.moves import CLAIM, If
from reservable.queue.statuses import ENDED, Status

BATCH = 1000
"""Rows that are deleted in one statement."""


def reap(desk: Desk) -> int:
    """Have all rows fail whose lease is over with no attempts left; how many it was."""
    buried = 0
    while batch := bury(desk):
        buried += batch
        if batch < BURIED_AT_ONCE:
            break
    return buried


def prune(desk: Desk, older_than: Any) -> int:
    """Delete the rows that ended so long ago, in small batches; how many it was."""
    queue, column = desk.queue, desk.queue.columns
    values = [queue.statuses.value(role) for role in sorted(ENDED) if role in queue.statuses]
    cutoff = now() - span(durations.delay(older_than))
    ended = (column["status"].in_(values), column["finished_at"] <= cutoff)
    looking = statements.states(queue).where(*ended).order_by(*queue.pk).limit(BATCH)
    locked = looking.with_for_update(of=queue.table, skip_locked=True)

    def batch(connection: Connection) -> int:
        keys = [tuple(row) for row in connection.execute(locked)]
        for columns in queue.parts if keys else ():
            connection.execute(delete(columns[0].table).where(statements.keyed(columns, keys)))
        return len(keys)

    pruned = 0
    while desk.rows(looking.limit(1)):
        gone = desk.run(batch, whole=True)
        pruned += gone
        if gone < BATCH:
            break
    return pruned


def due(queue: Queue) -> ColumnElement[bool]:
    """Rows that can be claimed now."""
    return statements.movable(queue, CLAIM)


def running(queue: Queue) -> ColumnElement[bool]:
    """Rows whose lease is not over."""
    return and_(_is_running(queue), queue.columns["retry_at"] > now())


def expired(queue: Queue) -> ColumnElement[bool]:
    """Rows that are running, and whose lease is over."""
    return and_(_is_running(queue), queue.columns["retry_at"] <= now())


def _is_running(queue: Queue) -> ColumnElement[bool]:
    return statements.in_status(queue, Status.RUNNING, If.ANY)
