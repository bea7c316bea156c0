"""For whom something is kept: the asyncio task that asked for it, or else the thread."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

AtWork = Callable[[], bool]
"""Whether an owner is at work still."""


def at_work() -> AtWork:
    """How to tell whether the task or thread that runs now has ended; holds it weakly."""
    task = _task()
    if task is not None:
        running = weakref.ref(task)
        return lambda: (one := running()) is not None and not one.done()
    alive = weakref.ref(threading.current_thread())
    return lambda: (one := alive()) is not None and one.is_alive()


def _task() -> Any:
    # Who has not loaded asyncio runs no task, and need not pay for it.
    current = getattr(sys.modules.get("asyncio"), "current_task", None)
    try:
        return current() if current is not None else None
    except RuntimeError:  # no event loop runs in this thread
        return None
