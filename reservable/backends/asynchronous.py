"""The contract of a store of reservations for asyncio: the verbs of `base.Backend`, awaited."""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import CancelledError, current_task
from collections.abc import AsyncIterator, Awaitable, Sequence
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from reservable.backends.base import Capabilities, Verbs
from reservable.grants import Grant, Holder, Released
from reservable.plans import arun


@runtime_checkable
class AsyncBackend(Protocol):
    """A store of reservations, for asyncio; every verb means what it means in `Backend`.

    `asynchronous` is True, which tells it from a blocking backend, whose verbs have the same names.
    """

    asynchronous: bool
    prefix: str
    capabilities: Capabilities

    async def acquire(self, name: str, token: str, owner: str, lifetime: timedelta) -> Grant | None: ...

    async def acquire_first(
        self, names: Sequence[str], token: str, owner: str, lifetime: timedelta
    ) -> Grant | None: ...

    async def release(self, name: str, token: str) -> Released: ...

    async def extend(self, name: str, token: str, lifetime: timedelta) -> int | None: ...

    async def holder(self, name: str) -> Holder | None: ...

    async def break_(self, name: str) -> bool: ...

    def list(self, pattern: str = "*") -> AsyncIterator[Holder]: ...

    async def prune(self) -> int: ...

    async def close(self) -> None: ...


T = TypeVar("T")
V = TypeVar("V", bound=Verbs)


async def heeding(work: Awaitable[T]) -> T:
    """What the work returns, unless the task is cancelled meanwhile: then `CancelledError` in any case.

    `asyncio.wait_for`, which drivers and pools wait with, loses a cancellation at times (before Python 3.12).
    """
    task = current_task()
    before = task.cancelling() if task is not None else 0
    try:
        return await work
    finally:
        if task is not None and task.cancelling() > before:
            raise CancelledError


class AsyncPlannedBackend(ABC, Generic[V]):
    """An `AsyncBackend` made of a store's plans and one way to await their steps."""

    asynchronous = True

    def __init__(self, verbs: V, *, prefix: str, capabilities: Capabilities) -> None:
        self._verbs = verbs
        self.prefix = prefix
        self.capabilities = capabilities

    async def perform(self, step: Any) -> Any:
        """Do one step of a plan, and then end in `CancelledError` if the task was cancelled meanwhile."""
        return await heeding(self._perform(step))

    @abstractmethod
    async def _perform(self, step: Any) -> Any:
        """Do one step of a plan."""

    async def acquire(self, name: str, token: str, owner: str, lifetime: timedelta) -> Grant | None:
        return await arun(self._verbs.acquire(name, token, owner, lifetime), self.perform)

    async def acquire_first(
        self, names: Sequence[str], token: str, owner: str, lifetime: timedelta
    ) -> Grant | None:
        return await arun(self._verbs.acquire_first(names, token, owner, lifetime), self.perform)

    async def release(self, name: str, token: str) -> Released:
        return await arun(self._verbs.release(name, token), self.perform)

    async def extend(self, name: str, token: str, lifetime: timedelta) -> int | None:
        return await arun(self._verbs.extend(name, token, lifetime), self.perform)

    async def extend_many(self, held: Sequence[tuple[str, str]], lifetime: timedelta) -> dict[str, int]:
        return await arun(self._verbs.extend_many(held, lifetime), self.perform)

    async def holder(self, name: str) -> Holder | None:
        return await arun(self._verbs.holder(name), self.perform)

    async def break_(self, name: str) -> bool:
        return await arun(self._verbs.break_(name), self.perform)

    async def list(self, pattern: str = "*") -> AsyncIterator[Holder]:
        after: Any = None
        while True:
            holders, after = await arun(self._verbs.page(pattern, after), self.perform)
            for holder in holders:
                yield holder
            if after is None:
                return

    async def prune(self) -> int:
        return await arun(self._verbs.prune(), self.perform)

    @abstractmethod
    async def close(self) -> None: ...
