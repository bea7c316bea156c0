"""How tests measure the pauses of a watch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SLACK = 2.0
"""Seconds that a busy machine may add."""


@contextmanager
def later(action: Callable[[], Any], after: float) -> Iterator[None]:
    timer = threading.Timer(after, action)
    timer.start()
    yield
    timer.join()


def took(pause: Callable[[float], None], seconds: float) -> float:
    before = time.monotonic()
    pause(seconds)
    return time.monotonic() - before
