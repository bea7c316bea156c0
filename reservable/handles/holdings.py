"""What one object has reserved, so that it gives back its own grants and nothing else.

An object may be shared by threads and tasks: each gives back the grant it was given itself.
"""

from __future__ import annotations

import sys
import threading
from typing import Any
from weakref import WeakSet, ref

from reservable.handles.handle import Handle


def _worker() -> Any:
    """The running task, or else the thread."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:  # asking for the task would raise
        task = asyncio.current_task()
        if task is not None:
            return task
    return threading.current_thread()


class _Account:
    """One name: who has tried it, and the grants in their order."""

    __slots__ = ("grants", "workers")

    def __init__(self) -> None:
        self.workers: WeakSet[Any] = WeakSet()
        # By reference: the id of a worker that has ended is soon that of another.
        self.grants: list[tuple[ref[Any], Handle]] = []


class Holdings:
    """The reservations that one object has tried and got."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}

    def tried(self, handle: Handle) -> None:
        """Remember that the present worker asks for the name."""
        account = self._accounts.get(handle.name)
        if account is None:
            account = self._accounts.setdefault(handle.name, _Account())
        account.workers.add(_worker())

    def granted(self, handle: Handle) -> None:
        """Remember a grant of the present worker's, and forget those that have ended."""
        self.tried(handle)
        account = self._accounts[handle.name]
        account.grants = [grant for grant in account.grants if grant[1].held and grant[1] is not handle]
        account.grants.append((ref(_worker()), handle))

    def holding(self, name: str) -> Handle | None:
        """The handle on the grant of this name that stands, as far as we know; the latest one."""
        account = self._accounts.get(name)
        held = [handle for _, handle in account.grants if handle.held] if account is not None else []
        return held[-1] if held else None

    def has_tried(self, name: str) -> bool:
        """Whether this object ever asked for the name, so that it is no bystander."""
        return name in self._accounts

    def to_release(self, name: str) -> Handle | None:
        """The grant that the present worker gives back: its own, or the latest if it never asked itself."""
        account = self._accounts.get(name)
        if account is None:
            return None
        me = _worker()
        own = [handle for worker, handle in account.grants if worker() is me and handle.token is not None]
        if own:
            return own[-1]
        if me in account.workers:
            return None  # asked and was refused: what stands is another's
        standing = [handle for _, handle in account.grants if handle.token is not None]
        return standing[-1] if standing else None

    def __reduce__(self) -> Any:
        # A copy of the object, in this process or another, holds nothing.
        return (Holdings, ())
