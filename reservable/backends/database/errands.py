"""Work that a blocking driver may never finish, for a caller who has only so much time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from reservable.backends.watching import remaining

T = TypeVar("T")


def errand(work: Callable[[], T], until: float, late: Callable[[T], None]) -> T:
    """What the work returns or raises; `TimeoutError` when it is not done by then, by the monotonic clock.

    It is done in a thread, which goes on when the caller has gone, after the time or by an interrupt; what it still
    returns is given to `late`.
    """
    done: Future[T] = Future()

    def run() -> None:
        answer, failure = None, None
        try:
            answer = work()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            failure = error
        if not done.set_running_or_notify_cancel():
            if failure is None:
                late(answer)  # type: ignore[arg-type]  # work returned it
        elif failure is None:
            done.set_result(answer)  # type: ignore[arg-type]  # as above
        else:
            done.set_exception(failure)

    Thread(target=run, daemon=True, name="reservable-errand").start()
    try:
        return done.result(remaining(until))
    except BaseException:
        # Done at this very moment, it was done for nobody all the same.
        if not done.cancel() and done.exception() is None:
            late(done.result())
        raise
