"""A worker's loops, as verbs of the class: `work` and `run`, and their twins for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from reservable.calling import is_awaited
from reservable.errors import NotSupported
from reservable.leasing import async_working, working
from reservable.leasing.async_lease import AsyncLease
from reservable.leasing.async_pool import AsyncHandler, AsyncPool
from reservable.leasing.duty import Round, duty_of, round_of
from reservable.leasing.lease import Lease
from reservable.leasing.pool import Handler, Pool
from reservable.sqlalchemy.queue import calls
from reservable.sqlalchemy.queue.factories import afound, check_factory, found
from reservable.sqlalchemy.queue.queues import queue_of

if TYPE_CHECKING:  # needs greenlet, which blocking code does without
    from sqlalchemy.ext.asyncio import AsyncSession

IDLE = 1.0
"""Seconds between two looks for work at most."""

Sessions = Callable[[], Session]


class Workers:
    """The verbs that take row after row until they are told to stop.

    Rows are claimed as by `claim`, `batch` of them in one statement, and kept alive from the claim on; those that
    wait for their turn are nobody else's meanwhile. `session_factory` makes a session, as `sessionmaker(engine)` does:
    it is only asked which database is meant. `stop` is an Event, or a function that returns True in time: what has
    begun is then finished, and what was claimed and has not begun is given back. Where there is nothing to do, the
    pauses grow up to `idle` (a delay), and end when the next row comes due. An exception of a body is logged and
    stored, and stays inside.

    The first claim raises `BackendError` when the database cannot be reached; after that an outage is waited for.
    """

    @classmethod
    def work(  # noqa: PLR0917 - as the contract has it
        cls,
        session_factory: Sessions,
        batch: int = 1,
        where: ColumnElement[bool] | None = None,
        worker: str | None = None,
        stop: Any = None,
        step: str | None = None,
        idle: Any = IDLE,
    ) -> Iterator[Lease]:
        """The leases of the next rows, one after the other, each for a `with` block.

        One that was neither begun nor finished is given back when the next is asked for, and when the loop is left.
        """
        round_ = cls._round(session_factory, batch, where, worker, step, stop, idle)
        return working.leases(partial(found, session_factory, queue_of(cls)), *round_)

    @classmethod
    def awork(  # noqa: PLR0917 - as above
        cls,
        session_factory: Callable[[], AsyncSession],
        batch: int = 1,
        where: ColumnElement[bool] | None = None,
        worker: str | None = None,
        stop: Any = None,
        step: str | None = None,
        idle: Any = IDLE,
    ) -> AsyncIterator[AsyncLease]:
        """`work` for asyncio, for `async for`; close it with `contextlib.aclosing` where the loop may be left early."""
        round_ = cls._round(session_factory, batch, where, worker, step, stop, idle)
        return async_working.leases(partial(afound, session_factory, queue_of(cls)), *round_)

    @classmethod
    def run(  # noqa: PLR0917 - as above
        cls,
        session_factory: Sessions,
        handler: Handler,
        concurrency: int = 1,
        batch: int = 1,
        where: ColumnElement[bool] | None = None,
        worker: str | None = None,
        stop: Any = None,
        step: str | None = None,
        complete_in_batches: bool = False,
        idle: Any = IDLE,
    ) -> None:
        """Call `handler(lease)` in the lease's block, in so many threads, until it is to stop.

        It returns when everything in hand is finished or given back. With `complete_in_batches` rows that are done
        are completed together, in one statement for many, at the latest a tenth of a second later; each is kept alive
        until then, and a process that is killed in between leaves them to be done again. What is no `Exception` gives
        its row back, stops the rest, and comes out. Signals are the caller's: set `stop` in their handler.
        """
        round_ = cls._round(session_factory, batch, where, worker, step, stop, idle)
        duty = duty_of(round_, handler, concurrency, complete_in_batches=complete_in_batches)
        if is_awaited(handler):
            raise NotSupported("the handler is a coroutine function, which run() cannot await: use arun()")
        duty.intake.open_for_many(found(session_factory, queue_of(cls)))
        Pool(duty).run()

    @classmethod
    async def arun(  # noqa: PLR0917 - as above
        cls,
        session_factory: Callable[[], AsyncSession],
        handler: AsyncHandler,
        concurrency: int = 1,
        batch: int = 1,
        where: ColumnElement[bool] | None = None,
        worker: str | None = None,
        stop: Any = None,
        step: str | None = None,
        complete_in_batches: bool = False,
        idle: Any = IDLE,
    ) -> None:
        """`run` for asyncio: the handler is a coroutine function, and has so many tasks. Cancelled, it gives all back."""
        round_ = cls._round(session_factory, batch, where, worker, step, stop, idle)
        duty = duty_of(round_, handler, concurrency, complete_in_batches=complete_in_batches)
        duty.intake.open_for_many(await afound(session_factory, queue_of(cls)))
        await AsyncPool(duty).run()

    @classmethod
    def _round(cls, session_factory: Any, *asked: Any) -> Round:
        """The arguments of one call, checked."""
        check_factory(session_factory)
        *claim, stop, idle = asked
        return round_of(calls.claim(queue_of(cls), *claim), stop, idle)
