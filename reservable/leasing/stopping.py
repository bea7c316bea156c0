"""When a worker is to stop, as its caller says: by an event, or by a function that is asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from reservable.errors import ConfigurationError

LOOK = 0.05
"""Seconds after which a worker that waits looks whether it is to stop."""


class Stopping:
    """Called, it says whether to stop.

    `stop` is a `threading.Event`, an `asyncio.Event`, another's that has `is_set`, or a function without arguments;
    None: never. Raises `ConfigurationError`.
    """

    def __init__(self, stop: Any) -> None:
        asked = getattr(stop, "is_set", stop)
        if stop is not None and not callable(asked):
            raise ConfigurationError(
                f"stop is {stop!r}: give an Event, or a function that returns True in time"
            )
        self._asked: Callable[[], Any] = asked if stop is not None else _never

    def __call__(self) -> bool:
        return bool(self._asked())

    def naps(self, seconds: float) -> Iterator[float]:
        """Short sleeps, to be slept by whoever asks, until the time is over or it is to stop."""
        until = time.monotonic() + seconds
        while not self() and (left := until - time.monotonic()) > 0:
            yield min(left, LOOK)


def _never() -> bool:
    return False
