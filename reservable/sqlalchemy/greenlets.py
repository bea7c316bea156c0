"""Blocking code inside SQLAlchemy's greenlets, where it may await: what `AsyncSession` and `run_sync` do.

SQLAlchemy runs its ORM for asyncio as blocking code in a greenlet, whose I/O gives way to the event loop. The finding
functions do the same, so that both colours run one search.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from sqlalchemy.util import await_only

from reservable.backends.asynchronous import AsyncBackend
from reservable.backends.base import Backend
from reservable.cancelling import insisted, settled
from reservable.errors import NotSupported
from reservable.finding.search import BRIEFLY
from reservable.grants import Grant, Holder, Released

T = TypeVar("T")


def in_greenlet() -> bool:
    """Whether this code may await by `await_only`."""
    greenlet: Any = sys.modules.get("greenlet")
    if greenlet is None:
        return False
    current = greenlet.getcurrent()
    # The first is SQLAlchemy's own mark, the second the attribute of its greenlets when they had none yet (2.0.2).
    return bool(getattr(current, "__sqlalchemy_greenlet_provider__", False)) or hasattr(current, "driver")


def within(backend: AsyncBackend) -> Backend:
    """The backend for asyncio, for blocking code in a greenlet."""
    inner: Backend | None = getattr(backend, "within", None)  # a database's, which does the work there itself
    return inner if inner is not None else InGreenlet(backend)


class InGreenlet:
    """A backend for asyncio that looks like one for blocking code, in a greenlet.

    Its grants are not left to nobody by a cancellation, and `apart` is the backend itself, which keeps them alive.
    """

    def __init__(self, backend: AsyncBackend) -> None:
        self.backend = backend
        self.apart = getattr(backend, "apart", backend)
        self.prefix = backend.prefix
        # To be told of a release it would have to be awaited as a context manager is: it asks again instead.
        self.capabilities = replace(backend.capabilities, tells=False)

    def pause(self, seconds: float) -> None:
        """Wait without blocking the event loop."""
        _awaited(asyncio.sleep, seconds)

    def acquire(self, name: str, token: str, owner: str, lifetime: timedelta) -> Grant | None:
        request = partial(self.backend.acquire, name, token, owner, lifetime)
        return _awaited(lambda: settled(request(), lambda _: self.backend.release(name, token)))

    def acquire_first(
        self, names: Sequence[str], token: str, owner: str, lifetime: timedelta
    ) -> Grant | None:
        request = partial(self.backend.acquire_first, names, token, owner, lifetime)

        async def undone(grant: Grant | None) -> None:
            if grant is None:  # or nobody knows: asked again with its token, the store tells
                grant = await self.backend.acquire_first(names, token, owner, BRIEFLY)
            if grant is not None:
                await self.backend.release(grant.name, grant.token)

        return _awaited(lambda: settled(request(), undone))

    def release(self, name: str, token: str) -> Released:
        return _awaited(lambda: insisted(partial(self.backend.release, name, token)))

    def extend(self, name: str, token: str, lifetime: timedelta) -> int | None:
        return _awaited(self.backend.extend, name, token, lifetime)

    def holder(self, name: str) -> Holder | None:
        return _awaited(self.backend.holder, name)

    def break_(self, name: str) -> bool:
        return _awaited(self.backend.break_, name)

    def list(self, pattern: str = "*") -> Iterator[Holder]:
        return iter(_awaited(lambda: _all(self.backend.list(pattern))))

    def prune(self) -> int:
        return _awaited(self.backend.prune)

    def close(self) -> None:
        _awaited(self.backend.close)

    def __repr__(self) -> str:
        return repr(self.backend)


def _awaited(request: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
    """The outcome of the request; `NotSupported` where it cannot be awaited, before it is made."""
    if not in_greenlet():
        raise NotSupported(
            "this reservation was made inside run_sync(), where blocking code may await, and is used outside: await the "
            "twin of this call (areserve, arelease, ais_reserved, areservation), or make it there"
        )
    return await_only(request(*arguments))


async def _all(items: AsyncIterator[T]) -> list[T]:
    return [item async for item in items]
