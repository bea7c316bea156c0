"""What a lease does, as blocking code for both colours."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from reservable import durations
from reservable.errors import BackendError, LeaseLost, NotSupported, ReservableError
from reservable.leasing.claiming import Claimed
from reservable.leasing.desk import Desk
from reservable.leasing.parameters import Held, is_sql
from reservable.leasing.standing import Hold
from reservable.queue.failures import added, entry
from reservable.queue.moves import ABANDON, ADVANCE, COMPLETE, FAIL, FAIL_AND_RETRY, GIVE_BACK, Move
from reservable.queue.signals import Cancel, Outcome, Retry, Snooze

log = logging.getLogger("reservable")


class LeaseBase:
    """One claimed row and its token. Every write carries the token and changes nothing once it is another's."""

    is_awaited = False
    """Whether its verbs are coroutines."""

    def __init__(
        self, desk: Desk, claimed: Claimed, worker: str, *, renew: bool = False, skip_error: bool = False
    ) -> None:
        self.row: Any = claimed.row
        """The row as it was claimed: loaded, and in no session."""
        self.pk = desk.queue.read_key(claimed.pk)
        self._key = claimed.pk
        self.token: int = claimed.token
        self.attempt: int = claimed.row.attempts
        """Which attempt it is, from 1."""
        self.step: str | None = claimed.row.step
        self._desk = desk
        self._hold = Hold(desk, claimed, worker, self._mark_lost)
        self._skip_error = skip_error
        self._values: dict[str, Any] = {}
        self._finished = False
        self._begun = False
        self._in_transaction = False
        self._later: Callable[[LeaseBase], object] | None = None
        if renew:
            self._hold.beat()

    @property
    def expires_at(self) -> datetime | None:
        """When it is over without another heartbeat, by the database's clock; None when it is finished or lost."""
        return self._hold.expires_at

    @property
    def finished(self) -> bool:
        """Whether the row was given back, whatever came of it."""
        return self._finished

    @property
    def is_open(self) -> bool:
        """Whether it is neither finished nor known to be lost, and this process's."""
        return not (self._finished or self._hold.is_lost) and self._hold.is_here

    @property
    def is_untouched(self) -> bool:
        """Whether it is open, and no block of it has begun."""
        return self.is_open and not self._begun

    def complete_later(self, how: Callable[[LeaseBase], object]) -> None:
        """At the end of a block that ends well, hand the lease to `how` instead of completing it at once.

        Not one with values that were `set`: those are written alone anyway.
        """
        self._later = how

    def set(self, **values: Any) -> None:
        """Have attributes of the row written along with its completion.

        Raises `NotSupported` for the queue's own attributes and for what the class does not have.
        """
        self._desk.queue.own_values(values)
        self._must_be_unfinished()
        self._values.update(values)

    # The verbs. Each raises `LeaseLost`, and then has changed nothing, or `BackendError`.

    def _update(self, values: dict[str, Any]) -> None:
        columns = self._desk.queue.own_values(values)
        self._must_be_free()
        if columns:
            statement = self._desk.queue.table.update().values(columns).where(self._desk.fence([self._held]))
            # What the database computes from what was there must not be computed twice.
            once = not any(map(is_sql, columns.values()))
            self._must_be_mine(self._desk.change([self._held], statement, repeatable=once).answer)
            self._desk.show(self.row, values)

    def _heartbeat(self, duration: Any) -> None:
        lifetime = self._desk.queue.options.lifetime if duration is None else durations.lifetime(duration)
        self._must_be_free()
        if self._hold.is_lost:
            raise LeaseLost(
                f"this lease of {self._hold.name} has run out: finish it, which succeeds while nobody has taken the row"
            )
        sent = time.monotonic()
        until = self._desk.extend([self._held], lifetime).get(self._held)
        self._must_be_mine(until is not None)
        self._hold.moved(until or 0, sent + lifetime.total_seconds(), sent)

    def _complete(self, values: dict[str, Any]) -> None:
        values = self._values | values
        self._move(self._completion, values=values, advance=True)

    def _fail(self, error: BaseException | str, retry_in: Any) -> None:
        options = self._desk.queue.options
        delay = options.backoff.delay(self.attempt) if retry_in is None else durations.delay(retry_in)
        move = FAIL_AND_RETRY if options.has_attempts_left(self.attempt) else FAIL
        self._move(move, delay, error=error)

    def _snooze(self, delay: Any) -> None:
        self._move(GIVE_BACK, durations.delay(delay))

    def _cancel(self, reason: str | None) -> None:
        self._move(ABANDON, error=None if reason is None else Cancel(reason))

    @contextmanager
    def _transaction(self, session: Any) -> Iterator[Any]:
        self._must_be_free()
        self._in_transaction = True
        try:
            with self._desk.transaction(self, session) as row:
                yield row
        finally:
            self._in_transaction = False

    # How they are done

    @property
    def _held(self) -> Held:
        return self._key, self.token

    @property
    def _completion(self) -> Move:
        return COMPLETE if self._desk.queue.options.after(self.step) is None else ADVANCE

    def _following(self) -> dict[Any, Any]:
        """The step that comes next, where there is one."""
        queue = self._desk.queue
        step = queue.options.after(self.step)
        return {} if step is None else {queue.columns["step"]: step}

    def _move(
        self,
        move: Move,
        delay: timedelta = timedelta(),
        *,
        values: dict[str, Any] | None = None,
        error: BaseException | str | None = None,
        advance: bool = False,
    ) -> None:
        queue = self._desk.queue
        columns = queue.own_values(values or {}) | (self._following() if advance else {})
        self._must_be_free()
        if error is not None:
            columns[queue.columns["errors"]] = added(self.row.errors, entry(error, self.attempt))
        self._hold.rest()
        try:
            asked = self._desk.move(move, [self._held], delay, columns)
            # A reply that was lost may have told of our own success: the row shows it, for the token stays.
            done = asked.answer or (asked.again and self._desk.still([self._held], move))
        except BaseException:
            self._hold.go_on()
            raise
        if asked.again and not done:
            self._hold.gone()
            raise BackendError(
                f"an answer about {self._hold.name} was lost, and the row has moved on since: whether this lease has "
                "finished it cannot be known"
            )
        self._must_be_mine(done)
        self._end()
        self._desk.show(self.row, values or {})

    def _must_be_unfinished(self) -> None:
        if self._finished:
            raise LeaseLost(f"this lease of {self._hold.name} is finished already: nothing was written")
        if not self._hold.is_here:
            raise LeaseLost(
                f"this lease of {self._hold.name} is that of the process that was forked: nothing was written"
            )

    def _must_be_free(self) -> None:
        """Not in the middle of its own transaction, which would wait for itself."""
        self._must_be_unfinished()
        if self._in_transaction:
            raise NotSupported(
                "inside its transaction a lease has no other verbs but set(): leaving the block completes the row, and "
                "raising an exception rolls it back"
            )

    def _must_be_mine(self, changed: Any) -> None:
        if not changed:
            self._hold.gone()
            raise LeaseLost(f"{self._hold.name} is no longer leased by this worker: nothing was written")

    def _end(self) -> None:
        self._finished = True
        self._hold.end()

    # With blocks

    def _enter(self) -> None:
        self._must_be_unfinished()
        self._begun = True
        if self._later is None:
            self._hold.beat()  # for whoever is in the block, and no longer for who claimed it

    def _exit(self, error: BaseException | None) -> bool:
        """What the end of the block means for the row; whether the error stays inside."""
        if self._finished or not self._hold.is_here:
            return self._is_told(error)
        if error is None and self._later is not None and not self._values:
            self._later(self)
            return False
        if error is not None and not isinstance(error, Outcome):
            self._give_up(error)
            return self._is_told(error)
        try:
            self._obey(error) if error is not None else self._complete({})
        except LeaseLost:  # the log has it already
            if not self._skip_error:
                raise
        except Exception as refused:  # an end that cannot be stored is a failure
            self._give_up(refused)
            if not self._is_told(refused):
                raise
        return error is not None

    def _give_up(self, error: BaseException) -> None:
        """Store the failure, or give the row back for what is none; else nobody will finish it, and it runs out."""
        try:
            if isinstance(error, Exception):
                self._fail(error, None)
            else:
                self._snooze(0)
        except ReservableError as trouble:
            log.warning("%s: what became of its row could not be stored: %s", self._hold.name, trouble)
            self._hold.rest()  # even if somebody keeps this object

    def _obey(self, outcome: Outcome) -> None:
        if isinstance(outcome, Snooze):
            self._snooze(outcome.delay)
        elif isinstance(outcome, Retry):
            self._fail(outcome.__cause__ or outcome, outcome.after)
        else:
            assert isinstance(outcome, Cancel)
            self._cancel(outcome.reason)

    def _is_told(self, error: BaseException | None) -> bool:
        if not self._skip_error or not isinstance(error, Exception):
            return False
        log.error("%s failed", self._hold.name, exc_info=error)
        return True

    def _mark_lost(self) -> None:
        """Wake whoever waits for the loss; called from any thread."""
        raise NotImplementedError
