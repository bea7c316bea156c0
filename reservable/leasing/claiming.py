"""Claims: the next rows, or one row."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, and_

from reservable.errors import BackendError, NotClaimable
from reservable.leasing import statements
from reservable.leasing.burying import bury, bury_at
from reservable.leasing.columns import now
from reservable.leasing.desk import Desk
from reservable.leasing.parameters import (
    BELOW,
    LIMIT,
    PRIORITY,
    WORKER,
    Held,
    Values,
    held_values,
    once,
)
from reservable.leasing.picking import (
    ROLES,
    Wanted,
    claim_held,
    claim_picked,
    highest,
    pick,
)
from reservable.leasing.queues import Key
from reservable.plans import pauses
from reservable.queue.moves import CLAIM, GIVE_BACK
from reservable.queue.statuses import Status
from reservable.retrying import PATIENCE

log = logging.getLogger("reservable")


class Claimed(NamedTuple):
    """A row that was claimed, loaded, and in no session."""

    row: Any
    pk: Key
    token: int
    deadline: float
    """The end of the lease on `time.monotonic()`, never later than the truth."""

    @property
    def held(self) -> Held:
        return self.pk, self.token


def claim_next(desk: Desk, limit: int, wanted: Wanted, worker: str) -> list[Claimed]:
    """Up to `limit` rows in order of priority, due time and primary key.

    Those whose attempts are used up fail on the way, and others are claimed in their place.
    """
    claimed: list[Claimed] = []
    try:
        for priority, roles in levels(desk):
            if Status.RUNNING in roles:
                bury_at(desk, priority)
            values = {PRIORITY: priority, LIMIT: limit - len(claimed), WORKER: worker}
            sent = time.monotonic()
            claimed += _loaded(desk, _take(desk, wanted, roles, values), sent)
            if len(claimed) >= limit:
                break
    except BaseException:
        give_back(desk, [one.held for one in claimed])
        raise
    return claimed


def levels(desk: Desk) -> Iterator[tuple[int, list[Status]]]:
    """The priorities that there are, from the highest, and the roles of the rows that have it."""
    below = None
    while True:
        statement = once(desk.queue.kept, ("highest", below is None), partial(highest, desk.queue, below))
        [found] = desk.rows(statement, {BELOW: below})
        levels = dict(zip(ROLES, found, strict=True))
        below = max((level for level in levels.values() if level is not None), default=None)
        if below is None:
            return
        yield below, [role for role, level in levels.items() if level == below]


def claim_one(desk: Desk, pk: Key, name: str, worker: str, *, ignore_due: bool) -> Claimed:
    """The row with this key, as its columns are given it; `name` is for messages. Raises `NotClaimable`."""
    patient_until = time.monotonic() + PATIENCE
    for rest in pauses(0.001, 0.1):
        state = _state(desk, pk)
        if state is not None and _is_used_up(desk, state):
            bury(desk, statements.by_key(desk.queue, [pk]))
        else:
            reason = _reason(desk, state, ignore_due=ignore_due)
            if state is None or reason is not None:
                raise NotClaimable(f"{name} cannot be started: {reason}", str(reason))
            claimed = _claimed(desk, state, name, worker)
            if claimed is not None:
                return claimed
        # Somebody else was first, or has locked it: look again what it is now.
        if time.monotonic() > patient_until:
            break
        desk.pause(rest)
    raise BackendError(
        f"another transaction has written {name}, or locked it, and not ended yet: commit it, or "
        "roll it back (is it the session that was given?)"
    )


def _claimed(desk: Desk, state: Row[Any], name: str, worker: str) -> Claimed | None:
    """The row that was seen in this state, unless it has changed meanwhile."""
    queue = desk.queue
    pk = tuple(state[: len(queue.pk)])
    running = queue.statuses.role(state.status) is Status.RUNNING
    unchanged = and_(
        statements.owned(queue, [(pk, state.lease_token)]),
        queue.columns["status"] == state.status,
        *([queue.columns["retry_at"] <= now()] if running else []),  # a heartbeat may have come meanwhile
    )
    move = statements.moved(queue, CLAIM, queue.options.lifetime, worker=worker).where(
        desk.unlocked(unchanged, one=True)
    )
    sent = time.monotonic()
    asked = desk.ask(lambda connection: connection.execute(move).rowcount)
    if asked.answer:
        found = _loaded(desk, [(pk, state.lease_token + 1)], sent)
        return found[0] if found else None
    if asked.again:
        raise BackendError(
            f"an answer about {name} was lost: whether it was claimed cannot be known; if so, the lease "
            "runs out by itself"
        )
    return None


def give_back(desk: Desk, held: Sequence[Held]) -> None:
    """Undo claims that nobody will be told of; what cannot be undone runs out by itself."""
    if held:
        try:
            desk.move(GIVE_BACK, held)
        except BackendError:
            return


def _take(desk: Desk, wanted: Wanted, roles: Sequence[Status], values: Values) -> list[Held]:
    """Claim rows of these roles, in order of their due times."""
    queue, limit = desk.queue, values[LIMIT]
    taken: list[Held] = []

    def locked_first(connection: Connection) -> list[Row[Any]]:
        found = _in_order(row for one in picks for row in connection.execute(one, values))[:limit]
        if found:
            held = [_held(row) for row in found]
            taken[:] = [(pk, token + 1) for pk, token in held]
            statement = once(queue.kept, ("take", *held_values(held)), lambda: claim_held(queue, held))
            connection.execute(statement, values | held_values(held))
        return found

    if desk.returns:
        statement = once(wanted.kept, ("claim", *roles), lambda: claim_picked(queue, roles, wanted.where))
        rows = _in_order(desk.rows(statement, values))
        return [(pk, token + 1) for pk, token in map(_held, rows)]
    picks = [once(wanted.kept, ("pick", role), partial(pick, queue, role, wanted.where)) for role in roles]
    if desk.has_one_writer and not any(desk.rows(one, values | {LIMIT: 1}) for one in picks):
        rows = []  # a look must not make writers wait
    else:
        try:
            rows = desk.run(locked_first, whole=True)
        except BaseException:  # an interrupt may have come when it was committed
            give_back(desk, taken)
            raise
    return [(pk, token + 1) for pk, token in map(_held, rows)]


def _held(row: Row[Any]) -> Held:
    return tuple(row[:-3]), row.lease_token


def _in_order(rows: Iterable[Row[Any]]) -> list[Row[Any]]:
    found = [*rows]
    try:
        return sorted(found, key=lambda row: (row.retry_at, *row[:-3]))
    except TypeError:  # keys of a type that has no order
        return sorted(found, key=lambda row: row.retry_at)


def _loaded(desk: Desk, held: Sequence[Held], sent: float) -> list[Claimed]:
    """The rows as they are now, in the order of the claims; one that has been deleted is left out."""
    if not held:
        return []
    queue = desk.queue
    try:
        rows = desk.run(lambda connection: desk.load(connection, held))
        found = {queue.text(queue.key_of(row)): row for row in rows}
        deadline = sent + queue.options.lifetime.total_seconds()
        places = [(queue.text(queue.read_key(pk)), pk, token) for pk, token in held]
        claimed = [Claimed(found[text], pk, token, deadline) for text, pk, token in places if text in found]
    except BaseException:
        give_back(desk, held)
        raise
    hidden = [(pk, token) for text, pk, token in places if text not in found]
    if hidden:  # deleted meanwhile, or left out by what the user adds to every statement of a Session
        give_back(desk, hidden)
        log.warning("%s: %d rows that were claimed cannot be loaded", queue.entity.__name__, len(hidden))
    return claimed


def _state(desk: Desk, pk: Key) -> Row[Any] | None:
    queue, column = desk.queue, desk.queue.columns
    due = (column["retry_at"] <= now()).label("due")
    looking = statements.states(queue, column["status"], column["lease_token"], column["attempts"], due)
    rows = desk.rows(looking.where(statements.by_key(queue, [pk])))
    return rows[0] if rows else None


def _is_used_up(desk: Desk, state: Row[Any]) -> bool:
    running = desk.queue.statuses.role(state.status) is Status.RUNNING
    return running and state.due and not desk.queue.options.has_attempts_left(state.attempts)


def _reason(desk: Desk, state: Row[Any] | None, *, ignore_due: bool) -> str | None:
    """Why the row cannot be claimed; None when it can."""
    if state is None:
        return "missing"
    role = desk.queue.statuses.role(state.status)
    if role is Status.PENDING:
        return None if state.due or ignore_due else "not due"
    if role is Status.RUNNING:
        return None if state.due else "running"
    return role.value if role is not None else str(state.status)
