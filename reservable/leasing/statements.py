"""The statements of the queue: every move is one UPDATE, made of the table of moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Select,
    Update,
    and_,
    bindparam,
    case,
    false,
    null,
    or_,
    select,
    true,
    tuple_,
    update,
)

from reservable.backends.database.clock import clock
from reservable.leasing import parameters
from reservable.leasing.columns import microseconds, now, span
from reservable.leasing.parameters import Held
from reservable.leasing.queues import Key, Queue
from reservable.leasing.telling import told
from reservable.queue.moves import HEARTBEAT, Attempts, If, Move
from reservable.queue.statuses import Status

Moment = timedelta | datetime
"""A delay from the database's own time, or an aware datetime."""


def moment(at: Moment) -> ColumnElement[int]:
    """A time to be stored; one that is past by the database's clock means now."""
    if isinstance(at, datetime):
        asked = bindparam(None, microseconds(at), BigInteger())
        return case((asked > clock(), asked), else_=clock())
    return clock() + bindparam(None, span(at), BigInteger())


def in_status(queue: Queue, role: Status, condition: If) -> ColumnElement[bool]:
    """Rows that are in this status, and what else must be true of them."""
    if role not in queue.statuses:
        return false()
    column = queue.columns
    limit = queue.options.max_attempts
    over = column["retry_at"] <= now()
    conditions: dict[If, ColumnElement[bool]] = {
        If.ANY: true(),
        If.MINE: true(),  # the token is compared along with the primary key
        If.UNSCHEDULED: column["retry_at"].is_(None),
        If.DUE: over,
        If.OVER: over if limit is None else and_(over, column["attempts"] < limit),
        If.USED_UP: false() if limit is None else and_(over, column["attempts"] >= limit),
    }
    return and_(column["status"] == queue.statuses.value(role), conditions[condition])


def movable(queue: Queue, move: Move) -> ColumnElement[bool]:
    """The rows that this move is allowed for."""
    return or_(*(in_status(queue, role, condition) for role, condition in move.sources.items()))


def moved(
    queue: Queue,
    move: Move,
    at: Moment | None = None,
    *,
    worker: str | None = None,
    values: Mapping[Column[Any], Any] | None = None,
) -> Update:
    """The move of whatever rows `where` will say; `at` goes with moves that are timed.

    Its parameters are WORKER, DELAY where `at` is one, and those of `parameters.assigned`.
    """
    column = queue.columns
    sets: list[tuple[Column[Any], Any]] = parameters.assigned(values or {})
    attempts = _attempts(queue, move.attempts)
    if attempts is not None:
        sets.append((column["attempts"], attempts))
    if move.new_token:
        sets.append((column["lease_token"], column["lease_token"] + 1))
    if not move.leases:
        sets.append((column["leased_by"], null()))
        sets.append((column["finished_at"], clock() if move.ends else null()))
    elif worker is not None:
        sets.append((column["leased_by"], bindparam(parameters.WORKER, worker, column["leased_by"].type)))
    sets.append((column["retry_at"], _due(at) if move.timed else null()))
    # The last one: MySQL goes from left to right, and the attempts look at what the status was before.
    sets.append((column["status"], queue.statuses.value(move.target)))
    statement = update(queue.table).ordered_values(*sets)
    tells = queue.options.notify and move.target is Status.PENDING
    return statement.where(told(queue)) if tells else statement


def _due(at: Moment | None) -> ColumnElement[int]:
    if isinstance(at, datetime):
        return moment(at)
    return clock() + bindparam(parameters.DELAY, span(at or timedelta()), BigInteger())


def _attempts(queue: Queue, attempts: Attempts) -> Any:
    column = queue.columns["attempts"]
    if attempts is Attempts.COUNTED:
        return column + 1
    if attempts is Attempts.NONE:
        return 0
    if attempts is Attempts.GIVEN_BACK:
        running = queue.columns["status"] == queue.statuses.value(Status.RUNNING)
        return case((and_(running, column > 0), column - 1), else_=column)
    return None


def by_key(queue: Queue, keys: Sequence[Key]) -> ColumnElement[bool]:
    """The rows with these primary keys."""
    return keyed(queue.pk, keys)


def keyed(pk: Sequence[Column[Any]], keys: Sequence[Key]) -> ColumnElement[bool]:
    """The rows of any table with these primary keys."""
    if len(keys) == 1:
        return and_(*(column == value for column, value in zip(pk, keys[0], strict=True)))
    if len(pk) == 1:
        return pk[0].in_([key[0] for key in keys])
    return tuple_(*pk).in_(keys)


def owned(queue: Queue, held: Sequence[Held]) -> ColumnElement[bool]:
    """The rows that still have the token they were claimed with; its parameters are `parameters.held_values`."""
    return parameters.owned(queue.pk, queue.columns["lease_token"], held)


def leased(queue: Queue, held: Sequence[Held], *, strictly: bool) -> ColumnElement[bool]:
    """The rows whose leases are these still; `strictly`: and are not over."""
    column = queue.columns
    running = column["status"] == queue.statuses.value(Status.RUNNING)
    found = and_(owned(queue, held), running)
    return and_(found, column["retry_at"] > now()) if strictly else found


def extended(queue: Queue, held: Sequence[Held]) -> Update:
    """The heartbeat of leases whose rows are locked; its parameters are DELAY and those of `held_values`."""
    return moved(queue, HEARTBEAT, timedelta()).where(owned(queue, held))


def states(queue: Queue, *more: Any) -> Select[Any]:
    """The primary key and what else is asked for, of whatever rows of the class `where` will say."""
    statement: Any = select(*queue.pk, *more)
    return statement.select_from(queue.rows)  # type: ignore[no-any-return]
