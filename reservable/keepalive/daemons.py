"""A thread that is there while there is something to do."""

from __future__ import annotations

import threading
from collections.abc import Callable

IDLE = 5.0
"""Seconds without anything to do after which a thread ends."""


class Daemon:
    """Runs `work` in a daemon thread, which ends when `work` returns and is started again when it is needed.

    Without a lock: whoever puts the one key into a dict first is the thread. `waiting` tells whether something
    has come in for a thread that was about to end.
    """

    def __init__(self, name: str, work: Callable[[], None], waiting: Callable[[], bool]) -> None:
        self._name = name
        self._work = work
        self._waiting = waiting
        self._running: dict[str, threading.Thread] = {}

    def need(self) -> None:
        """Have the thread run. Raises `RuntimeError` when it cannot be started."""
        if self._running:
            return
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        if self._running.setdefault("thread", thread) is thread:
            try:
                thread.start()
            except RuntimeError:
                self._running.clear()
                raise

    @property
    def runs(self) -> bool:
        return bool(self._running)

    def _run(self) -> None:
        me = threading.current_thread()
        while True:
            try:
                self._work()
            finally:
                self._running.clear()
            # What came in a moment ago was told that there is a thread.
            if not self._waiting() or self._running.setdefault("thread", me) is not me:
                return
