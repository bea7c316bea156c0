"""The first connection that is made with a dialect."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.util import await_only

from reservable.retrying import PATIENCE


class Introduction:
    """Event loops in several threads, and the first connection of one of them.

    On that one SQLAlchemy asks the server for its version. Another loop's would not wait for the answer.
    """

    def __init__(self) -> None:
        self._done = False
        self._lock = threading.Lock()

    @contextmanager
    def made(self) -> Iterator[None]:
        """A block that connects: until one has, there is one at a time. Within SQLAlchemy's greenlets."""
        patient_until = time.monotonic() + PATIENCE
        alone = False
        while not (self._done or alone) and time.monotonic() < patient_until:
            # Never waited for with the loop standing still: its holder may be another task of the same loop.
            alone = self._lock.acquire(blocking=False)
            if not alone:
                await_only(asyncio.sleep(0.005))
        try:
            yield
            self._done = True
        finally:
            if alone:
                self._lock.release()
