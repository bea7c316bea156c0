"""Querysets and managers of a queue: the verbs of workers."""

# Django has no types, and what pyright guesses of its sources is wrong.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connections, models

from reservable.calling import is_awaited
from reservable.django.companions import close_all
from reservable.django.queue import pruning, standing
from reservable.django.queue.conditions import conditions
from reservable.django.queue.desks import ModelDesk, desk_of
from reservable.django.queue.guard import look_at_all, remember, settle, unchanged_stay
from reservable.errors import NotSupported
from reservable.leasing import async_working, calls, working
from reservable.leasing.asked import Claim, Start
from reservable.leasing.async_lease import AsyncLease
from reservable.leasing.async_pool import AsyncHandler, AsyncPool
from reservable.leasing.burying import reap
from reservable.leasing.duty import Round, duty_of, round_of
from reservable.leasing.lease import Lease
from reservable.leasing.pool import Handler, Pool
from reservable.queue.statuses import Value

IDLE = 1.0
"""Seconds between two looks for work at most."""


class QueuedQuerySet(models.QuerySet):
    """A queryset whose rows are pieces of work; its filters say which of them a worker takes.

    `Video.objects.filter(kind="news").claim(limit=20)`. Rows come in the queue's own order: priority, due time, primary
    key. `where` is a further `Q`. The verbs run in short transactions of their own, beside one that is open here; they
    raise `BackendError` when the database fails, and `NotSupported` for filters that join another table, for slices
    and the like. Those that begin with an a are for asyncio.
    """

    def claim(
        self,
        limit: int = 1,
        where: Any = None,
        worker: str | None = None,
        step: str | None = None,
        renew: bool = False,
    ) -> list[Lease]:
        """Lease the next rows, at most `limit`; `step` is the step they have come to, `worker` text for people.

        With `renew` they are kept alive from now on; a `with` block does so by itself.
        """
        desk = self._desk()
        return calls.leases(lambda: desk, self._asked(desk, limit, where, worker, step), renew=renew)

    async def aclaim(
        self,
        limit: int = 1,
        where: Any = None,
        worker: str | None = None,
        step: str | None = None,
        renew: bool = False,
    ) -> list[AsyncLease]:
        """`claim` for asyncio. Cancelled, it gives back what it has claimed."""
        desk = await sync_to_async(self._desk)()
        asked = await sync_to_async(self._asked)(desk, limit, where, worker, step)
        return await calls.aleases(desk.spawned, lambda: desk, asked, renew=renew)

    @contextmanager
    def start(self, pk: Any, skip_error: bool = False, ignore_due: bool = False) -> Iterator[Lease]:
        """Lease one row by its primary key, for a `with` block, whatever the filters say.

        `skip_error`: an exception of the body is logged, and stays inside. `ignore_due`: also before it is due.
        Raises `NotClaimable`, whose `reason` says why in a word.
        """
        desk = self._desk()
        asked = Start(desk.queue, pk, ignore_due=ignore_due)
        [lease] = calls.leases(lambda: desk, asked, skip_error=skip_error)
        with lease:
            yield lease

    @asynccontextmanager
    async def astart(
        self, pk: Any, skip_error: bool = False, ignore_due: bool = False
    ) -> AsyncIterator[AsyncLease]:
        """`start` for asyncio."""
        desk = await sync_to_async(self._desk)()
        asked = await sync_to_async(Start)(desk.queue, pk, ignore_due=ignore_due)
        [lease] = await calls.aleases(desk.spawned, lambda: desk, asked, skip_error=skip_error)
        async with lease:
            yield lease

    def work(  # noqa: PLR0917 - as the contract has it
        self,
        batch: int = 1,
        where: Any = None,
        worker: str | None = None,
        stop: Any = None,
        step: str | None = None,
        idle: Any = IDLE,
    ) -> Iterator[Lease]:
        """The leases of the next rows, one after the other, each for a `with` block, until `stop` says so.

        `batch` rows are claimed in one statement. `stop` is an Event, or a function that returns True in time. Where
        there is nothing to do, the pauses grow up to `idle` (a delay), and end when the next row comes due. What was
        not begun is given back. An exception of a body is logged and stored, and stays inside.
        """
        desk = self._desk()
        return working.leases(lambda: desk, *self._round(desk, batch, where, worker, step, stop, idle))

    async def awork(  # noqa: PLR0917 - as above
        self,
        batch: int = 1,
        where: Any = None,
        worker: str | None = None,
        stop: Any = None,
        step: str | None = None,
        idle: Any = IDLE,
    ) -> AsyncIterator[AsyncLease]:
        """`work` for asyncio, for `async for`; close it with `contextlib.aclosing` where the loop may be left early."""
        desk = await sync_to_async(self._desk)()
        round_ = await sync_to_async(self._round)(desk, batch, where, worker, step, stop, idle)

        async def found() -> ModelDesk:
            return desk

        leases = async_working.leases(found, *round_)
        try:
            async for lease in leases:
                yield lease
        finally:
            await leases.aclose()  # type: ignore[attr-defined]

    def run(  # noqa: PLR0917 - as the contract has it
        self,
        handler: Handler,
        concurrency: int = 1,
        batch: int = 1,
        where: Any = None,
        worker: str | None = None,
        stop: Any = None,
        step: str | None = None,
        complete_in_batches: bool = False,
        idle: Any = IDLE,
    ) -> None:
        """Call `handler(lease)` in the lease's block, in so many threads, until it is to stop.

        It returns when everything in hand is finished or given back. Around each call Django's connections of the
        thread are looked after as around a request. With `complete_in_batches` rows that are done are completed
        together, at the latest a tenth of a second later. Signals are the caller's: set `stop` in their handler.
        """
        desk = self._desk()
        round_ = self._round(desk, batch, where, worker, step, stop, idle)
        duty = duty_of(round_, handler, concurrency, complete_in_batches=complete_in_batches)
        if is_awaited(handler):
            raise NotSupported("the handler is a coroutine function, which run() cannot await: use arun()")
        duty.intake.open_for_many(desk)
        Pool(duty._replace(handler=_as_a_request(handler)), _leave).run()

    async def arun(  # noqa: PLR0917 - as above
        self,
        handler: AsyncHandler,
        concurrency: int = 1,
        batch: int = 1,
        where: Any = None,
        worker: str | None = None,
        stop: Any = None,
        step: str | None = None,
        complete_in_batches: bool = False,
        idle: Any = IDLE,
    ) -> None:
        """`run` for asyncio: the handler is a coroutine function, and has so many tasks. Cancelled, it gives all back."""
        desk = await sync_to_async(self._desk)()
        round_ = await sync_to_async(self._round)(desk, batch, where, worker, step, stop, idle)
        duty = duty_of(round_, handler, concurrency, complete_in_batches=complete_in_batches)
        duty.intake.open(desk)
        await AsyncPool(duty).run()

    def reap(self) -> int:
        """Have rows fail whose lease is over with no attempts left; how many. Claims do so in passing."""
        return reap(self._desk())

    async def areap(self) -> int:
        """`reap` for asyncio."""
        return await sync_to_async(self.reap)()

    def prune(self, older_than: Any) -> int:
        """Delete rows of this queryset that ended so long ago (a delay), as `delete()` does, in batches; how many rows."""
        return pruning.prune(self, self._desk(), older_than)

    async def aprune(self, older_than: Any) -> int:
        """`prune` for asyncio."""
        return await sync_to_async(self.prune)(older_than)

    def status_counts(self, where: Any = None) -> dict[Value, int]:
        """How many rows of this queryset have each stored status, zeros too."""
        return standing.counts(self if where is None else self.filter(where))

    async def astatus_counts(self, where: Any = None) -> dict[Value, int]:
        """`status_counts` for asyncio."""
        return await sync_to_async(self.status_counts)(where)

    def due(self) -> Self:
        """The rows that can be claimed now."""
        found: Self = self.filter(standing.due(self.model))
        return found

    def running(self) -> Self:
        """The rows whose lease is not over."""
        found: Self = self.filter(standing.running(self.model))
        return found

    def expired(self) -> Self:
        """The rows that are running, and whose lease is over."""
        found: Self = self.filter(standing.expired(self.model))
        return found

    def bulk_create(self, objs: Any, *arguments: Any, **options: Any) -> Any:
        """As Django's; the objects know what of the queue their rows began with."""
        made = super().bulk_create(objs, *arguments, **options)
        for row in made:
            settle(row)
        return made

    def bulk_update(self, objs: Any, fields: Any, *arguments: Any, **options: Any) -> int:
        """As Django's; as a `save()`, it writes the queue's columns where the objects' values were changed, and warns."""
        rows, names = tuple(objs), [*fields]
        look_at_all(rows, names)
        with unchanged_stay(rows, names):
            written: int = super().bulk_update(rows, names, *arguments, **options)
        for row in rows:
            remember(row, names)
        return written

    # How they are asked for

    def _desk(self) -> ModelDesk:
        self._for_write = True
        return desk_of(self.model, self.db)

    def _asked(self, desk: ModelDesk, limit: int, where: Any, worker: str | None, step: str | None) -> Claim:
        rows = self if where is None else self.filter(where)
        return Claim(desk.queue, limit, conditions(rows, desk.alias), worker, step)

    def _round(self, desk: ModelDesk, *asked: Any) -> Round:
        *claim, stop, idle = asked
        return round_of(self._asked(desk, *claim), stop, idle)


_Manager: Any = models.Manager.from_queryset(QueuedQuerySet)


class QueuedManager(_Manager):
    """A manager with the methods of `QueuedQuerySet`."""


def _as_a_request(handler: Handler) -> Handler:
    """The handler, with Django's connections of this thread looked after before and after."""

    def handled(lease: Lease) -> Any:
        close_old_connections()
        try:
            return handler(lease)
        finally:
            close_old_connections()

    return handled


def _leave() -> None:
    """Close what this thread has opened: nobody else will."""
    close_all()
    connections.close_all()
