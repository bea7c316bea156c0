"""One grant as this process knows it: all handles on it share what is known of its end.

Handles of both colours may stand on one grant, and threads may use them at the same time. What one of them does or
learns holds for all.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from typing import Any
from weakref import ref

from reservable.errors import ReservableError
from reservable.grants import Grant, Released


class Outcome(Enum):
    """What an asked release comes to."""

    DONE = "done"
    """It was released, and by nobody but who asked."""
    LOST = "lost"
    """It was over or taken before."""
    UNKNOWN = "unknown"
    """Over by now: whether it was released or ran out cannot be known."""
    ELSEWHERE = "elsewhere"
    """Another thread releases it or has done so, and is told what came of it."""


class Tenure:
    """A grant, its end, and what was asked of the store to end it."""

    __slots__ = (
        "_asking",
        "_deciding",
        "_handles",
        "deadline",
        "free_at",
        "grant",
        "in_doubt",
        "lost",
        "over",
        "pid",
        "since",
    )

    def __init__(self, grant: Grant, deadline: float) -> None:
        self.grant = grant
        self.deadline = deadline
        """On this side's monotonic clock."""
        self.since = time.monotonic()
        """When we heard of it, which is later than the store's own time of the grant."""
        self.free_at = 0.0
        """Released before, it runs out then."""
        self.pid = os.getpid()
        self.over = False
        self.lost = False
        """It is over, and was not released by us."""
        self.in_doubt = False
        """A release was asked for that nobody heard the answer to: it may be done, or yet to come."""
        self._asking = 0
        self._handles: list[ref[Any]] = []
        self._deciding = threading.RLock()  # a signal handler may come in between

    @property
    def here(self) -> bool:
        # A forked child has a copy of the handle and must not act on its parent's reservation.
        return self.pid == os.getpid()

    @property
    def mine(self) -> bool:
        return not self.over and self.here

    @property
    def believed(self) -> bool:
        """Whether it stands for certain, if its time is not over: nobody has asked to release it."""
        return self.mine and not self._asking and not self.in_doubt

    def join(self, handle: Any) -> None:
        """The handle stands on this grant from now on."""
        self._handles.append(ref(handle))

    def handles(self) -> Iterator[Any]:
        """The handles that joined and are there still; some may stand on another grant by now."""
        for one in [*self._handles]:
            handle = one()
            if handle is not None:
                yield handle

    def move(self, until: int, deadline: float) -> None:
        """It has another end, unless it is over."""
        with self._deciding:
            if not self.over:
                self.grant, self.deadline = replace(self.grant, until=until), deadline

    def end(self, *, lost: bool = False) -> bool:
        """Whether it was this call that ended it. While a release is under way, that one knows whether it is lost."""
        with self._deciding:
            if self.over or (lost and self._asking):
                return False
            self.over, self.lost = True, lost
            return True

    # A release: `asked` before its request is sent, then one of the two others. An error of ours that is no
    # `BackendError` says that it was refused on this side.

    def asked(self) -> None:
        with self._deciding:
            self._asking += 1

    def unanswered(self, error: BaseException) -> None:
        """Something came in between; unless it says otherwise, the store may have done it all the same."""
        refused = isinstance(error, ReservableError) and getattr(error, "nothing_done", True)
        with self._deciding:
            self._asking -= 1
            self.in_doubt = self.in_doubt or not refused

    def answered(self, answer: Released) -> Outcome:
        """What the answer means, and with it the end of the grant, which only one release is told of."""
        with self._deciding:
            self._asking -= 1
            if self.over:
                return Outcome.ELSEWHERE
            if answer is Released.NOT_HELD and self.in_doubt:
                answer = Released.UNKNOWN
            if answer is Released.UNKNOWN and time.monotonic() >= self.deadline:
                self.over = True
                return Outcome.UNKNOWN
            if answer is Released.YES or answer is Released.UNKNOWN:
                # Asked twice and nothing found: inside our own lifetime nobody else could have ended it but we.
                self.over = True
                return Outcome.DONE
            if self._asking:
                return Outcome.ELSEWHERE
            self.over = self.lost = True
            return Outcome.LOST
