"""Asking a store again: which trouble is worth another try, and how long to pause in between.

Plans only: no I/O, and no clock but the monotonic one. A backend's performer turns its driver's errors into the two signals below, and
everything else into a `BackendError`.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from reservable.errors import BackendError
from reservable.plans import Pause, Plan, pauses

PATIENCE = 5.0
"""Seconds that a store is given to get over a passing conflict before that becomes a `BackendError`."""

ASK_AGAIN_AFTER = (0.02, 0.2)
"""Seconds of pause before the second and the third try of a request whose reply was lost."""


class Signal(Exception):
    """What a performer raises when asking again can help; `failure` is what to raise when it does not."""

    def __init__(self, failure: BackendError) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Contended(Signal):
    """The store did nothing and says why: a deadlock, a serialization failure, a busy file."""


class LostReply(Signal):
    """The request may have reached the store, the answer did not reach us. Ask again with the same token."""


def asking(step: Any, undo: Any = None, *, repeatable: bool = True) -> Plan[tuple[Any, bool]]:
    """The answer to one request, and whether a reply was lost before it.

    Once a reply is lost the question is open, so it is asked twice more, whatever comes between. When there is
    still no answer, `undo` is asked for once, unheard, so that nobody is kept waiting for a grant that nobody
    knows of; then it is a `BackendError`. What must not be done twice is not `repeatable`.
    """
    again = contended = False
    patient_until = time.monotonic() + PATIENCE
    failure: BackendError
    pause: float | None
    conflicts, losses = pauses(0.001, 0.1), iter(ASK_AGAIN_AFTER if repeatable else ())
    while True:
        try:
            return (yield step), again
        except Contended as signal:
            failure, pause, contended = signal.failure, next(conflicts), True
            if time.monotonic() + pause > patient_until:
                break
        except LostReply as signal:
            again, failure, pause = True, signal.failure, next(losses, None)
        except BackendError as error:
            if not again:
                raise
            failure, pause = error, next(losses, None)
        if pause is None:
            break
        yield Pause(pause)
    if again and undo is not None:
        with suppress(Signal, BackendError):
            yield undo
    failure.nothing_done = not again and contended
    raise failure  # out here, where Python does not chain what a driver said; the cause is set
