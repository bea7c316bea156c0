"""The handle on one reservation, for blocking code."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from reservable import durations
from reservable.backends.base import Backend
from reservable.config import backend_for
from reservable.grants import Holder
from reservable.handles.dumped import revived
from reservable.handles.handle import OWN, Ask, Handle, Listen, log
from reservable.handles.tenure import Tenure
from reservable.plans import Pause, Plan, run

T = TypeVar("T")


class Reservation(Handle):
    """One name in one store, to be held for a while by one worker.

    With a token of its own for every grant: what it releases or extends is what it was granted itself, never
    what somebody else holds by now. May be used and released from any thread.
    """

    backend: Backend

    def __init__(self, backend: Backend | None, name: str, duration: Any = 60, **options: Any) -> None:
        super().__init__(backend, name, duration, **options)
        self._lost: threading.Event | None = None

    @property
    def lost(self) -> threading.Event:
        """Set as soon as anything learns that the reservation is over or was taken while it was ours."""
        event = self._lost
        if event is None:
            # Made when first asked for: most handles live without. One dict operation, so two threads share it.
            event = self.__dict__.setdefault("_event", threading.Event())
            self._lost = event
            if self._is_lost:
                event.set()
        return event

    def acquire(self, wait: Any = OWN) -> bool:
        """Take the name: True when granted, False when somebody holds it still after `wait`.

        `wait`: seconds or any duration; None or 0 tries once; `math.inf` has no limit; left out, the handle's
        own. While held: False, and the grant is not disturbed. After an end: a new grant with a new token.

        Raises `BackendError` when the store fails.
        """
        limit = self._wait if wait is OWN else durations.wait(wait)
        return self._run(self.acquiring(limit), waits=bool(limit))

    def extend(self, duration: Any) -> bool:
        """Set (never add) the time that is left; False, and `lost`, when it is over or taken.

        While it is kept alive, less than its own duration holds until the next renewal.

        Raises `InvalidDuration`, `BackendError`.
        """
        return self._run(self.extending(duration))

    def release(self) -> bool:
        """Give the name back if it is still ours: True. Over or taken: False, and the holder keeps it.

        Before `at_least` has passed, it runs out at that time.

        Raises `BackendError` when the store fails or the outcome cannot be known; it may be called again.
        """
        return self._run(self.releasing())

    def break_(self) -> bool:
        """Take the name from whoever holds it, for operators; False when nobody does."""
        self._must_be_blocking()
        return self.backend.break_(self.name)

    def holder(self) -> Holder | None:
        """Who holds the name now: a pure read, by anybody; None when nobody does."""
        self._must_be_blocking()
        return self.backend.holder(self.name)

    def check(self) -> None:
        """Ask the store whether the name is still ours; raises `ReservationLost` when not, `BackendError`."""
        self._run(self.checking())

    @classmethod
    def loads(cls, text: str, backend: Any = None) -> Self:
        """The handle on a grant that another process has dumped; `backend` is what `configure` takes.

        Raises `InvalidHandle` for text that `dumps` did not make. A wrong or stale token is not refused here:
        it is not the owner, and every verb says so. The store is not asked: until `check` or `extend` does,
        `remaining` goes by this machine's wall clock.
        """
        return revived(cls, text, lambda: backend_for(backend))

    def __enter__(self) -> Self:
        self._run(self.entering(), waits=bool(self._wait))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._run(self.exiting(self._leaving(), error))

    def _run(self, plan: Plan[T], *, waits: bool = False) -> T:
        """Perform the plan; one that waits, with one watch on the name, opened when there is first something to
        wait for.
        """
        self._must_be_blocking()
        if not waits:
            return run(plan, partial(_perform, self.backend))
        watch: Any = None

        def perform(step: Any) -> Any:
            nonlocal watch
            if type(step) is not Listen:
                return _perform(self.backend, step)
            if watch is None:
                watch = opened.enter_context(self.backend.watch(self.name))  # type: ignore[attr-defined]
            return watch.pause(step.seconds)

        with ExitStack() as opened:
            return run(plan, perform)

    def _must_be_blocking(self) -> None:
        """Before anything has changed: raises what the row's ORM, or the backend, has for a caller in an event loop."""
        if self._ledger is not None:
            self._ledger.must_be_blocking()
        mind = getattr(self.backend, "must_be_blocking", None)
        if mind is not None:
            mind()

    def _found(self) -> None:
        if self._lost is not None:
            self._lost.clear()

    def _learn_of_loss(self, tenure: Tenure) -> None:
        if self._lost is not None and self._tenure is tenure:
            self._lost.set()
        if self._on_lost is not None:
            # On a thread of its own, for whoever learned of the loss may have to tell others of theirs.
            threading.Thread(
                target=self._call, args=(self._on_lost,), name="reservable on_lost", daemon=True
            ).start()

    def _call(self, on_lost: Callable[[Any], Any]) -> None:
        try:
            on_lost(self)
        except Exception:  # noqa: BLE001 - the user's own, whatever it is
            log.exception("on_lost of %s failed", self.name)


def release(handle: Handle, backend: Backend) -> bool:
    """Release what a handle of either colour holds, through a backend for blocking code on the same store."""
    return run(handle.releasing(), partial(_perform, backend))


def _perform(backend: Backend, step: Any) -> Any:
    if type(step) is Ask:
        return getattr(backend, step.verb)(*step.arguments)
    assert isinstance(step, Pause)
    # In a greenlet of SQLAlchemy's a backend pauses in its own way. sleep is looked up late: gevent may replace it.
    return getattr(backend, "pause", time.sleep)(step.seconds)
