"""The lease of a row, for blocking code."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from reservable.leasing.completing import complete_all
from reservable.leasing.leases import LeaseBase

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


class Lease(LeaseBase):
    """One row of a queue that is this worker's until it is finished, or until the lease runs out.

    In a `with` block it is kept alive; when the body ends well the row is completed, with what was `set`; an
    `Exception` is stored, the row fails or waits for its next attempt, and the exception comes out. `Snooze`,
    `Retry` and `Cancel`, raised inside, do what they say and stay inside. What is no `Exception` (an interrupt, the
    end of the process) gives the row back and does not count as an attempt. After an explicit finish the end of the
    block does nothing.

    Every verb raises `LeaseLost` when the row is somebody else's by now, and then nothing was written; a lease that
    ran out while nobody took the row is still good, unless the queue is strict. `BackendError`: the database failed.
    """

    @property
    def lost(self) -> threading.Event:
        """Set as soon as anything learns that the lease has run out or that the row is another's."""
        event: threading.Event = self.__dict__.setdefault("_event", threading.Event())
        if self._hold.is_lost:
            event.set()
        return event

    def update(self, **values: Any) -> None:
        """Write attributes of the row now; the lease goes on. Raises as `set` does, too."""
        self._update(values)

    def heartbeat(self, duration: Any = None) -> None:
        """Set the time that is left to `duration`, or to the queue's own; never adds."""
        self._heartbeat(duration)

    def complete(self, **values: Any) -> None:
        """The row has succeeded, or is due for its next step; writes these values, and what was `set`."""
        self._complete(values)

    def fail(self, error: BaseException | str, retry_in: Any = None) -> None:
        """Store the error; the row is due again after `retry_in` or the backoff, or failed without attempts left."""
        self._fail(error, retry_in)

    def snooze(self, delay: Any) -> None:
        """Give the row back, due again after `delay`; the attempt does not count."""
        self._snooze(delay)

    def release(self) -> None:
        """Give the row back, due now; the attempt does not count."""
        self._snooze(0)

    def cancel(self, reason: str | None = None) -> None:
        """The row is cancelled, with the reason stored as its last error."""
        self._cancel(reason)

    def transaction(self, session: Session | None = None) -> AbstractContextManager[Any]:
        """The row in this session, locked; leaving the block commits its changes and the completion together.

        A body that raises rolls both back. Raises `LeaseLost`, and then both are rolled back as well.
        """
        return self._transaction(session)

    @classmethod
    def complete_all(cls, leases: Iterable[Lease]) -> list[Lease]:
        """Complete many in one statement where nothing was `set`; those that were still ours, in their order."""
        return complete_all([*leases])

    def __enter__(self) -> Self:
        self._desk.must_be_blocking()
        self._enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        return self._exit(error)

    def _mark_lost(self) -> None:
        event = self.__dict__.get("_event")
        if event is not None:
            event.set()
