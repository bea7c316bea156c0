"""Waiting for a name that somebody holds: when to try again. No I/O; time is the monotonic clock alone."""

from __future__ import annotations

import time

from reservable.plans import pauses

FIRST = 0.004
CEILING = 0.1


class Waiting:
    """One caller's wait: at most `limit` seconds from now (0: one try; `math.inf`: no limit).

    Pauses grow at random up to a ceiling, so that many waiters neither collide in step nor flood the store;
    none outlasts the deadline, and the last try is made at the deadline itself.
    """

    __slots__ = ("_deadline", "_expiry", "_pauses")

    def __init__(self, limit: float) -> None:
        self._deadline = time.monotonic() + limit
        self._expiry: float | None = None
        self._pauses = pauses(FIRST, CEILING)

    @property
    def left(self) -> float:
        """Seconds until the time is up."""
        return max(0.0, self._deadline - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether the time is up, so that there is no other try."""
        return time.monotonic() >= self._deadline

    @property
    def curious(self) -> bool:
        """Whether it is worth a read to learn when the present holder's time ends."""
        return self._expiry is None or time.monotonic() >= self._expiry

    def learned(self, remaining: float) -> None:
        """The present holder's time ends in so many seconds, unless it is extended."""
        self._expiry = time.monotonic() + remaining

    def pause(self) -> float:
        """Seconds until the next try: never past the deadline, and awake when the holder's time ends."""
        now = time.monotonic()
        pause = next(self._pauses)
        if self._expiry is not None and self._expiry > now:
            pause = min(pause, self._expiry - now + 0.001)
        return max(0.0, min(pause, self._deadline - now))
