"""The lease of a row, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from reservable.cancelling import settled
from reservable.leasing.completing import complete_all
from reservable.leasing.desk import Desk
from reservable.leasing.leases import LeaseBase

if TYPE_CHECKING:  # it cannot be had without greenlet
    from sqlalchemy.ext.asyncio import AsyncSession

T = TypeVar("T")


class AsyncLease(LeaseBase):
    """`Lease` for asyncio: what asks the database is awaited, everything else is the same.

    A verb that is cancelled is seen through all the same, so that no row is left half finished.
    """

    is_awaited = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._event: asyncio.Event | None = None
        self._under_way: asyncio.Future[Any] | None = None
        super().__init__(*arguments, **options)

    @property
    def lost(self) -> asyncio.Event:
        """As `Lease.lost`; an `asyncio.Event`."""
        if self._event is None:
            self._event = asyncio.Event()
        if self._hold.is_lost:
            self._event.set()
        return self._event

    async def update(self, **values: Any) -> None:
        """As `Lease.update`."""
        await self._see(self._update, values)

    async def heartbeat(self, duration: Any = None) -> None:
        """As `Lease.heartbeat`."""
        await self._see(self._heartbeat, duration)

    async def complete(self, **values: Any) -> None:
        """As `Lease.complete`."""
        await self._see(self._complete, values)

    async def fail(self, error: BaseException | str, retry_in: Any = None) -> None:
        """As `Lease.fail`."""
        await self._see(self._fail, error, retry_in)

    async def snooze(self, delay: Any) -> None:
        """As `Lease.snooze`."""
        await self._see(self._snooze, delay)

    async def release(self) -> None:
        """As `Lease.release`."""
        await self._see(self._snooze, 0)

    async def cancel(self, reason: str | None = None) -> None:
        """As `Lease.cancel`."""
        await self._see(self._cancel, reason)

    @asynccontextmanager
    async def transaction(self, session: AsyncSession | None = None) -> AsyncIterator[Any]:
        """As `Lease.transaction`."""
        block, spawned = self._transaction(session), self._desk.spawned
        row = await spawned(block.__enter__)
        try:
            yield row
        except BaseException as error:
            if not await spawned(block.__exit__, type(error), error, error.__traceback__):
                raise
        else:
            await spawned(block.__exit__, None, None, None)

    @classmethod
    async def complete_all(cls, leases: Iterable[AsyncLease]) -> list[AsyncLease]:
        """As `Lease.complete_all`."""
        given = [*leases]
        done: Any = await seen_through(given[0]._desk, complete_all, given) if given else []
        return done  # type: ignore[no-any-return]

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        return await self._see(self._exit, error)

    async def _see(self, work: Callable[..., T], *arguments: Any) -> T:
        """`seen_through`, one after the other: a verb that was cancelled may be under way still."""
        before = self._under_way

        async def in_turn() -> T:
            if before is not None:
                await asyncio.wait([before])
            return await self._desk.spawned(work, *arguments)

        self._under_way = mine = asyncio.ensure_future(in_turn())
        return await settled(_awaited(mine), _left_as_it_is)

    def _mark_lost(self) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody is left in it to be told
            self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        if self._event is not None:
            self._event.set()


async def seen_through(desk: Desk, work: Callable[..., T], *arguments: Any) -> T:
    """What blocking code returns, which runs to its end whatever becomes of the caller."""
    return await settled(desk.spawned(work, *arguments), _left_as_it_is)


async def _awaited(future: asyncio.Future[T]) -> T:
    return await future


async def _left_as_it_is(_: object) -> None:
    return None
