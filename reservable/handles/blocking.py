"""The handle on one reservation, for blocking code."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Self, TypeVar

from reservable import durations
from reservable.backends.base import Backend
from reservable.config import backend_for, owner_label
from reservable.errors import InvalidHandle
from reservable.grants import Holder
from reservable.handles.dumped import parse
from reservable.handles.handle import Handle
from reservable.names import plain_name
from reservable.plans import Pause, Plan, run

T = TypeVar("T")

_OWN: Any = object()


class Reservation(Handle):
    """One name in one store, to be held for a while by one worker.

    With a token of its own for every grant: what it releases or extends is what it was granted itself, never
    what somebody else holds by now. May be used and released from any thread.
    """

    backend: Backend

    def __init__(self, backend: Backend, name: str, duration: Any = 60, **options: Any) -> None:
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

    def acquire(self, wait: Any = _OWN) -> bool:
        """Take the name: True when granted, False when somebody holds it still after `wait`.

        `wait`: seconds or any duration; None or 0 tries once; `math.inf` has no limit; left out, the handle's
        own. While held: False, and the grant is not disturbed. After an end: a new grant with a new token.

        Raises `BackendError` when the store fails.
        """
        return self._run(self.acquiring(self._wait if wait is _OWN else durations.wait(wait)))

    def extend(self, duration: Any) -> bool:
        """Set (never add) the time that is left; False, and `lost`, when it is over or taken.

        Raises `InvalidDuration`, `BackendError`.
        """
        return self._run(self.extending(duration))

    def release(self) -> bool:
        """Give the name back if it is still ours: True. Over or taken: False, and the holder keeps it.

        Raises `BackendError` when the store fails or the outcome cannot be known; it may be called again.
        """
        return self._run(self.releasing())

    def break_(self) -> bool:
        """Take the name from whoever holds it, for operators; False when nobody does."""
        return self.backend.break_(self.name)

    def holder(self) -> Holder | None:
        """Who holds the name now, by the store; None when nobody does."""
        return self.backend.holder(self.name)

    def check(self) -> None:
        """Ask the store whether the name is still ours; raises `ReservationLost` when it is not."""
        self._run(self.checking())

    @classmethod
    def loads(cls, text: str, backend: Any = None) -> Self:
        """The handle on a grant that another process has dumped; `backend` is what `configure` takes.

        Raises `InvalidHandle` for text that `dumps` did not make. A wrong or stale token is not refused here:
        it is not the owner, and every verb says so. The store is not asked: until `check` or `extend` does,
        `remaining` goes by this machine's wall clock.
        """
        prefix, grant, owner = parse(text)
        store = backend_for(backend)
        if store.prefix != prefix:
            raise InvalidHandle(
                f"the reservation was made with the prefix {prefix!r}, and this backend has {store.prefix!r}"
            )
        left = (grant.until - time.time_ns() // 1000) / 1_000_000
        lifetime = min(max(left, durations.SHORTEST.total_seconds()), durations.LONGEST.total_seconds())
        handle = cls(store, grant.name, lifetime, owner=owner)
        handle.resume(grant, left)
        return handle

    def __enter__(self) -> Self:
        self._run(self.entering())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._run(self.exiting(error))

    def _run(self, plan: Plan[T]) -> T:
        return run(plan, self._perform)

    def _perform(self, step: Any) -> Any:
        if isinstance(step, Pause):
            return time.sleep(step.seconds)
        return getattr(self.backend, step.verb)(*step.arguments)

    def _found(self) -> None:
        if self._lost is not None:
            self._lost.clear()

    def _mark_lost(self) -> None:
        if self._lost is not None:
            self._lost.set()


def reservation(key: Any, duration: Any = 60, **options: Any) -> Reservation:
    """A handle on a name without a model, such as "nightly-report"; needs a configured backend.

    `options` as for `Reservable.reservation`. Raises `InvalidKey`, `InvalidDuration`, `ConfigurationError`.
    """
    name = plain_name(key)
    return Reservation(backend_for(), name, duration, owner=owner_label(), **options)
