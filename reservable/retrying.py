"""Asking a store again: which trouble is worth another try, and how long to pause in between.

Plans only: no clock, no I/O. A backend's performer turns its driver's errors into the two signals below;
everything else it raises as `BackendError` at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from reservable.errors import BackendError
from reservable.plans import Pause, Plan

PATIENCE = 5.0
"""Seconds of pauses a store is given to get over a passing conflict before that becomes a `BackendError`."""

RECONNECTS = 2
"""How often a request is sent again after its connection broke."""


class Contended(Exception):
    """The store did nothing and says why: a deadlock, a serialization failure, a busy file. Ask again."""


class LostReply(Exception):
    """The connection broke after the request may have been carried out. Ask again, with the same token."""


def pauses(budget: float = PATIENCE, first: float = 0.001, ceiling: float = 0.1) -> Iterator[float]:
    """Growing random pauses in seconds whose sum is the budget.

    Full jitter, so that processes that collided once do not collide again in step (Brooker, "Exponential
    Backoff And Jitter", AWS Architecture Blog, 2015).
    """
    step = first
    while budget > 0:
        pause = min(random.uniform(first / 2, step), budget)  # noqa: S311 - spreads load, protects nothing
        yield pause
        budget -= pause
        step = min(step * 2, ceiling)


class Asking:
    """One request to a store, sent until it is answered; `again` tells whether a reply was lost on the way."""

    __slots__ = ("again",)

    def __init__(self) -> None:
        self.again = False

    def __call__(self, step: Any) -> Plan[Any]:
        """Perform the step, again and again while that can help; the signals end here as `BackendError`."""
        reconnects = RECONNECTS
        waits: Iterator[float] | None = None
        while True:
            try:
                return (yield step)
            except Contended as signal:
                waits = waits or pauses()
                pause = next(waits, None)
                if pause is None:
                    raise BackendError(str(signal)) from signal.__cause__
            except LostReply as signal:
                self.again = True
                if not reconnects:
                    raise BackendError(str(signal)) from signal.__cause__
                reconnects -= 1
                pause = 0.0 if reconnects else 0.05
            if pause:
                yield Pause(pause)
