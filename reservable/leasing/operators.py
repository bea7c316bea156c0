"""What an operator does to a row: in the caller's own transaction, so that it is committed with the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from reservable import durations
from reservable.leasing import statements
from reservable.leasing.columns import STATE
from reservable.leasing.queues import Key, Queue
from reservable.leasing.statements import Moment
from reservable.queue.failures import added, entry
from reservable.queue.moves import CANCEL, ENQUEUE, PAUSE, RESUME, RETRY, Move
from reservable.queue.signals import Cancel

AT_ONCE = durations.delay(0)


class Operator(ABC):
    """One row, and the caller's transaction. Each verb says whether the row was in a status that it is for."""

    queue: Queue
    pk: Key

    @abstractmethod
    def execute(self, statement: Any) -> Any:
        """The result of a statement in the caller's transaction."""

    @abstractmethod
    def show(self, state: dict[str, Any]) -> None:
        """Have the object show what its row is now."""

    def enqueue(self, at: Any) -> bool:
        """Queue a row that has ended, or that was never scheduled."""
        steps = self.queue.options.steps
        return self._move(ENQUEUE, moment(at), {"step": steps[0]} if steps else {})

    def pause(self) -> bool:
        """Take the row out of the queue; whoever works on it loses it, and that attempt does not count."""
        return self._move(PAUSE)

    def resume(self, at: Any) -> bool:
        """Put a paused row back into the queue."""
        return self._move(RESUME, moment(at))

    def cancel(self, reason: str | None) -> bool:
        """End the row; whoever works on it loses it. The reason is stored as its last error."""
        if reason is None:
            return self._move(CANCEL)
        queue = self.queue
        # Locked, for nothing must be stored between reading the earlier ones and writing them back.
        looking = statements.states(queue, queue.columns["attempts"], queue.columns["errors"])
        locked = looking.where(self._mine).with_for_update(of=queue.table, key_share=True)
        found = self.execute(locked).first()
        if found is None:
            return False
        *_, attempts, errors = found
        return self._move(CANCEL, values={"errors": added(errors, entry(Cancel(reason), attempts))})

    def retry(self) -> bool:
        """Queue a row again that has failed or was cancelled, with all its attempts."""
        return self._move(RETRY)

    @property
    def _mine(self) -> Any:
        return statements.by_key(self.queue, [self.pk])

    def _move(self, move: Move, at: Moment = AT_ONCE, values: dict[str, Any] | None = None) -> bool:
        """Whether the row was in a status that the move is for; the object then shows what it is now."""
        queue = self.queue
        columns = {queue.columns[name]: value for name, value in (values or {}).items()}
        statement = statements.moved(queue, move, at, values=columns)
        if not self.execute(statement.where(self._mine, statements.movable(queue, move))).rowcount:
            return False
        shown = [name for name in STATE if name in queue.columns]
        state = statements.states(queue, *(queue.columns[name] for name in shown))
        found: Sequence[Any] = self.execute(state.where(self._mine)).one()
        self.show(dict(zip(shown, found[len(queue.pk) :], strict=True)))
        return True


def moment(at: Any) -> Moment:
    """An aware datetime as it is, for this host's clock may be wrong; anything else is counted from the database's."""
    if at is None:
        return AT_ONCE
    delay = durations.delay(at)
    return at if isinstance(at, datetime) else delay
