"""Deleting rows of a queue that ended long ago."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete

from reservable import durations
from reservable.leasing import statements
from reservable.leasing.columns import now, span
from reservable.leasing.desk import Desk
from reservable.sqlalchemy.queue.queues import MappedQueue

BATCH = 1000
"""Rows that are deleted in one transaction."""


def prune(desk: Desk, queue: MappedQueue, older_than: Any) -> int:
    """Delete the rows that ended so long ago, in small batches; how many it was.

    Rows that somebody has locked wait for the next time.
    """
    column = queue.columns
    cutoff = now() - span(durations.delay(older_than))
    ended = (column["status"].in_(queue.statuses.ended), column["finished_at"] <= cutoff)
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
