"""`run`: a pool of threads that calls a handler with the lease of each row."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from reservable.calling import done
from reservable.leasing.bells import Bell
from reservable.leasing.duty import Duty
from reservable.leasing.lease import Lease
from reservable.leasing.releasing import release_all
from reservable.leasing.stopping import LOOK
from reservable.leasing.working import taken

Handler = Callable[[Lease], Any]


def _nothing() -> None:
    pass


class Pool:
    """The caller's thread claims rows and stores finishes that are gathered; the pool's threads do the work.

    `leaving` is called by each of them at its end.
    """

    def __init__(self, duty: Duty, leaving: Callable[[], object] = _nothing) -> None:
        self._leaving = leaving
        self._intake, self._stopping, self._handler, self._concurrency, self._finishes = duty
        self._threads = [
            threading.Thread(target=self._serve, name=f"reservable worker {number}")
            for number in range(1, self._concurrency + 1)
        ]
        self._changed = threading.Condition()
        self._bell = Bell(self._intake.desk, self._wake)
        self._waiting: deque[Lease] = deque()
        self._free = 0
        self._closed = False
        self._failure: BaseException | None = None
        self._idle_until = 0.0

    def run(self) -> None:
        """Work until it is to stop, then finish what has begun and give back the rest.

        Raises what is no `Exception` and came out of a handler.
        """
        try:
            for thread in self._threads:
                thread.start()
            with self._bell:
                while not (self._stopping() or self._failure):
                    self._take_in(self._room())
        finally:
            self._close()
        if self._failure is not None:
            raise self._failure

    def _room(self) -> int:
        """How many threads have nothing to do, after waiting for one for a moment."""
        with self._changed:
            if not self._wants_more():
                left = self._idle_until - time.monotonic()
                self._changed.wait(min(left, LOOK) if left > 0 else LOOK)
            return self._free if self._wants_more() else 0

    def _wants_more(self) -> bool:
        is_idle = time.monotonic() < self._idle_until and not self._bell.has_rung
        return self._free > 0 and not self._waiting and not is_idle

    def _take_in(self, room: int) -> None:
        self._store()
        if not room:
            return
        self._bell.still()
        leases = taken(self._intake, max(room, self._intake.batch))
        if not leases:
            self._idle_until = time.monotonic() + self._intake.pause()
        if self._finishes is not None:
            for lease in leases:
                lease.complete_later(self._finishes.add)
        with self._changed:
            self._waiting.extend(leases)
            self._changed.notify_all()

    def _store(self) -> None:
        """Store the finishes that have been gathered for long enough."""
        if self._finishes is not None and self._finishes.are_due:
            self._finishes.store()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _close(self) -> None:
        with self._changed:
            self._closed = True
            unbegun = [*self._waiting]
            self._waiting.clear()
            self._changed.notify_all()
        release_all(unbegun)
        begun = [thread for thread in self._threads if thread.ident is not None]
        while any(thread.is_alive() for thread in begun):
            for thread in begun:
                thread.join(LOOK)
                self._store()
        if self._finishes is not None:
            self._finishes.store_last()

    # What follows runs in the pool's threads.

    def _serve(self) -> None:
        try:
            while (lease := self._next()) is not None:
                work_on(lease, self._handler)
        except BaseException as error:  # noqa: BLE001 - it comes out of `run`
            with self._changed:
                self._failure = self._failure or error
                self._changed.notify_all()
        finally:
            self._leaving()

    def _next(self) -> Lease | None:
        """The next lease, once there is one; None at the end."""
        with self._changed:
            self._free += 1
            self._changed.notify_all()
            try:
                while True:
                    self._changed.wait_for(lambda: self._waiting or self._closed)
                    if self._closed or self._failure or self._stopping():
                        return None
                    lease = self._waiting.popleft()
                    if lease.is_untouched:  # not lost meanwhile
                        return lease
            finally:
                self._free -= 1


def work_on(lease: Lease, handler: Handler) -> None:
    """Call the handler in the lease's block. Errors are stored and logged; what is no `Exception` comes out."""
    with lease:
        done(handler, handler(lease))
