"""Which rows are next: in order of priority, due time and primary key, and locked while they are taken.

The order is that of the index within one status and one priority only, so rows are picked from one status and one
priority at a time. Every database then finds the first ones at once and locks nothing else, and none sorts NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Integer, Select, Update, and_, bindparam, select, union_all

from reservable.leasing.parameters import BELOW, LIMIT, PRIORITY, Held, Kept
from reservable.leasing.queues import Queue
from reservable.leasing.statements import in_status, moved, owned
from reservable.queue.moves import CLAIM, If
from reservable.queue.statuses import Status

ROLES = tuple(CLAIM.sources)


class Wanted(NamedTuple):
    """What the rows have to match beside, and where the statements that say so are kept."""

    where: Sequence[ColumnElement[bool]]
    kept: Kept


def highest(queue: Queue, below: int | None) -> Select[Any]:
    """The highest priority, lower than `below`, of each role's rows, whether or not they are due."""
    status, priority = queue.columns["status"], queue.columns["priority"]
    lower = [] if below is None else [priority < bindparam(BELOW, below, Integer())]
    first = (
        select(priority)
        .where(status == queue.statuses.value(role), *lower)
        .order_by(priority.desc())
        .limit(1)
        for role in ROLES
    )
    return select(*(one.scalar_subquery().label(role.value) for role, one in zip(ROLES, first, strict=True)))


def pick(queue: Queue, role: Status, where: Sequence[ColumnElement[bool]]) -> Select[Any]:
    """The next rows of one role and priority, locked: primary key, token, attempts and due time of each.

    Only rows of the queue's own table are locked, with the weakest lock that keeps others away, and those that
    somebody else has locked are passed over. Its parameters are PRIORITY and LIMIT.
    """
    column = queue.columns
    keys = [key.label(f"key_{number}") for number, key in enumerate(queue.pk)]
    rest = [column[name].label(name) for name in ("lease_token", "attempts", "retry_at")]
    statement: Any = select(*keys, *rest)
    return (  # type: ignore[no-any-return]
        statement.select_from(queue.rows)
        .where(at_level(queue, role, 0, CLAIM.sources[role]), *where)
        .order_by(column["retry_at"], *queue.pk)
        .limit(bindparam(LIMIT, 1, Integer()))
        .with_for_update(skip_locked=True, key_share=True, of=queue.table)
    )


def at_level(queue: Queue, role: Status, priority: int, condition: If) -> ColumnElement[bool]:
    """The rows in a status that have this priority."""
    level = queue.columns["priority"] == bindparam(PRIORITY, priority, Integer())
    return and_(in_status(queue, role, condition), level)


def claim_picked(queue: Queue, roles: Sequence[Status], where: Sequence[ColumnElement[bool]]) -> Update:
    """Pick and claim in one statement, for servers where an UPDATE can return what it changed.

    A common table expression with locks is evaluated once, whatever the plan: a subquery might be asked again for
    every row, and each time lock and return others. Its parameters are PRIORITY, LIMIT and WORKER.
    """
    arms = [pick(queue, role, where).subquery() for role in roles]
    united = union_all(*(select(*arm.c) for arm in arms)).subquery()
    keys = [united.c[f"key_{number}"] for number in range(len(queue.pk))]
    first = select(*united.c).order_by(united.c.retry_at, *keys).limit(bindparam(LIMIT, 1, Integer()))
    picked = first.cte("reservable_picked")
    mine = and_(*(column == picked.c[f"key_{number}"] for number, column in enumerate(queue.pk)))
    return _claim(queue).where(mine).returning(*picked.c)


def claim_held(queue: Queue, held: Sequence[Held]) -> Update:
    """Claim rows that are locked; its parameters are WORKER and those of `held_values`."""
    return _claim(queue).where(owned(queue, held))


def _claim(queue: Queue) -> Update:
    return moved(queue, CLAIM, queue.options.lifetime, worker="")
