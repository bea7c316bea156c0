"""Who is in which `with` block: a handle may be lost and reserve again while its block is still running."""

from __future__ import annotations

import sys
import threading
from typing import Any

from reservable.handles.tenure import Tenure


def worker() -> Any:
    """The running task, or else the thread."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:  # asking for the task would raise
        task = asyncio.current_task()
        if task is not None:
            return task
    return threading.current_thread()


class Block:
    """One block, and the grant that it was entered with: what it gives back at its end."""

    __slots__ = ("cancelling", "interrupted", "task", "tenure", "worker")

    def __init__(self, tenure: Tenure | None, entered_by: Any = None) -> None:
        self.tenure = tenure
        self.worker = entered_by
        self.task: Any = None
        """What is cancelled when the grant is lost; only asyncio can."""
        self.cancelling = 0
        self.interrupted = False


class Blocks:
    """The blocks of one handle that are running."""

    def __init__(self) -> None:
        self._running: list[Block] = []

    def entered(self, tenure: Tenure | None) -> Block:
        """The present worker has entered a block with this grant."""
        block = Block(tenure, worker())
        self._running.append(block)
        return block

    def left(self) -> Block | None:
        """The innermost block of the present worker, which ends; another's where it has entered none."""
        me = worker()
        for place in range(len(self._running) - 1, -1, -1):
            if self._running[place].worker is me:
                return self._running.pop(place)
        return self._running.pop() if self._running else None

    def of(self, tenure: Tenure) -> list[Block]:
        """The blocks that were entered with this grant."""
        return [block for block in self._running if block.tenure is tenure]
