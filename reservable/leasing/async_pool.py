"""`arun`: tasks of asyncio, each of which awaits a handler with the lease of one row."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from inspect import isawaitable
from typing import Any

from reservable.leasing.async_lease import AsyncLease, seen_through
from reservable.leasing.async_working import taken
from reservable.leasing.bells import AsyncBell
from reservable.leasing.duty import Duty
from reservable.leasing.releasing import release_all
from reservable.leasing.stopping import LOOK

AsyncHandler = Callable[[AsyncLease], Awaitable[Any]]


class AsyncPool:
    """The caller's task claims rows and stores finishes that are gathered; each row is worked on in its own."""

    def __init__(self, duty: Duty) -> None:
        self._intake, self._stopping, self._handler, self._concurrency, self._finishes = duty
        self._changed = asyncio.Event()
        self._desk = self._intake.desk
        self._bell = AsyncBell(self._desk, self._changed.set)
        self._waiting: deque[AsyncLease] = deque()
        self._unbegun: deque[AsyncLease] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self._failure: BaseException | None = None
        self._idle_until = 0.0

    async def run(self) -> None:
        """As `Pool.run`. Cancelled, it cancels what it has begun, and gives it back."""
        try:
            async with self._bell:
                while not (self._stopping() or self._failure):
                    await self._take_in(await self._room())
        except BaseException:
            for task in self._tasks:
                task.cancel()
            raise
        finally:
            await self._close()
        if self._failure is not None:
            raise self._failure

    async def _room(self) -> int:
        """How many tasks there may be more, after waiting for one to end for a moment."""
        if not self._wants_more():
            left = self._idle_until - time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, LOOK) if left > 0 else LOOK):
                    await self._changed.wait()
        self._changed.clear()
        return self._concurrency - len(self._tasks) if self._wants_more() else 0

    def _wants_more(self) -> bool:
        free = self._concurrency > len(self._tasks)
        is_idle = time.monotonic() < self._idle_until and not self._bell.has_rung
        return free and not self._waiting and not is_idle

    async def _take_in(self, room: int) -> None:
        await self._store()
        if not room:
            return
        self._bell.still()
        leases = await taken(self._intake, max(room, self._intake.batch))
        if self._finishes is not None:
            for lease in leases:
                lease.complete_later(self._finishes.add)
        self._waiting.extend(leases)
        self._begin()
        if not leases:
            self._idle_until = time.monotonic() + await self._desk.spawned(self._intake.pause)

    async def _close(self) -> None:
        """Come to the end, however often this task is cancelled meanwhile; what has begun is then cancelled, too."""
        closing, cancelled = asyncio.ensure_future(self._come_to_the_end()), None
        while not closing.done():
            try:
                await asyncio.wait([closing])
            except asyncio.CancelledError as error:
                cancelled = error
                for task in self._tasks:
                    task.cancel()
        closing.result()
        if cancelled is not None:
            raise cancelled

    async def _come_to_the_end(self) -> None:
        self._closed = True
        await self._give_back(self._waiting)
        while self._tasks:
            await asyncio.wait(self._tasks, timeout=LOOK)
            await self._store()
        await self._give_back(self._unbegun)
        if self._finishes is not None:
            await seen_through(self._desk, self._finishes.store_last)

    async def _give_back(self, leases: deque[AsyncLease]) -> None:
        unbegun = [*leases]
        leases.clear()
        await seen_through(self._desk, release_all, unbegun)

    async def _store(self) -> None:
        """Store the finishes that have been gathered for long enough."""
        if self._finishes is not None and self._finishes.are_due:
            await seen_through(self._desk, self._finishes.store)

    def _begin(self) -> None:
        """Begin as many of those that wait as there is room for."""
        while self._waiting and len(self._tasks) < self._concurrency:
            if self._closed or self._failure or self._stopping():
                return
            lease = self._waiting.popleft()
            if lease.is_untouched:  # not lost meanwhile
                task = asyncio.ensure_future(work_on(lease, self._handler))
                self._tasks.add(task)
                task.add_done_callback(partial(self._ended, lease))

    def _ended(self, lease: AsyncLease, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if lease.is_untouched:  # cancelled before its first step
            self._unbegun.append(lease)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None:
            self._failure = self._failure or error
        self._changed.set()
        self._begin()


async def work_on(lease: AsyncLease, handler: AsyncHandler) -> None:
    """As `pool.work_on`."""
    async with lease:
        answer = handler(lease)
        if isawaitable(answer):  # what a plain function has to do, it has done
            await answer
