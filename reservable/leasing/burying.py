"""What becomes of rows whose workers have died as often as they may be tried: they fail."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Select

from reservable.leasing import statements
from reservable.leasing.desk import Desk
from reservable.leasing.parameters import PRIORITY, Values, once
from reservable.leasing.picking import at_level
from reservable.leasing.queues import Queue
from reservable.queue.failures import added, entry
from reservable.queue.moves import EXPIRE, If
from reservable.queue.statuses import Status

BURIED_AT_ONCE = 100
EXPIRED = "lease expired"


def reap(desk: Desk) -> int:
    """Have all rows fail whose lease is over with no attempts left; how many it was."""
    buried = 0
    while batch := bury(desk):
        buried += batch
        if batch < BURIED_AT_ONCE:
            break
    return buried


def bury(desk: Desk, among: ColumnElement[bool] | None = None) -> int:
    """Have rows fail whose lease is over with no attempts left: some of these, or of all; how many it was.

    Those that somebody else has locked are passed over.
    """
    return _bury(desk, _used_up(desk.queue, *([] if among is None else [among])), {})


def bury_at(desk: Desk, priority: int) -> None:
    """`bury` those with this priority."""
    queue = desk.queue
    if queue.options.max_attempts is None:
        return

    def build() -> Select[Any]:
        return _used_up(queue, at_level(queue, Status.RUNNING, priority, If.USED_UP))

    _bury(desk, once(queue.kept, "used up", build), {PRIORITY: priority})


def _used_up(queue: Queue, *among: ColumnElement[bool]) -> Select[Any]:
    column = queue.columns
    found = statements.states(queue, column["lease_token"], column["attempts"], column["errors"])
    return found.where(statements.in_status(queue, Status.RUNNING, If.USED_UP), *among).limit(BURIED_AT_ONCE)


def _bury(desk: Desk, looking: Select[Any], values: Values) -> int:
    if not desk.rows(looking, values):  # nearly always: and no lock is asked for
        return 0
    queue = desk.queue

    def work(connection: Connection) -> int:
        buried = 0
        found: Any = connection.execute(desk.passing_over(looking), values).all()
        for *key, token, attempts, errors in found:
            failed = {queue.columns["errors"]: added(errors, entry(EXPIRED, attempts))}
            move = statements.moved(queue, EXPIRE, values=failed)
            buried += connection.execute(move.where(statements.owned(queue, [(tuple(key), token)]))).rowcount
        return buried

    return desk.run(work, whole=True)
