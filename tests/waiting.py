"""Wait for something to become true, instead of sleeping and hoping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(condition: Callable[[], T], within: float = 20.0, every: float = 0.01) -> T:
    """Ask until the answer is true and return it; `AssertionError` when it is not so within that many seconds."""
    until = time.monotonic() + within
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() >= until:
            name = getattr(condition, "__qualname__", repr(condition))
            raise AssertionError(f"{name} was still {answer!r} after {within} seconds")
        time.sleep(every)
