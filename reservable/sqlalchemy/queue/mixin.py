"""`Queued`: a table of the user's own becomes a queue by one more base class."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import ColumnElement, event
from sqlalchemy.orm import Session

from reservable.leasing.asked import Start
from reservable.leasing.async_lease import AsyncLease
from reservable.leasing.burying import reap
from reservable.leasing.lease import Lease
from reservable.queue.failures import Entry
from reservable.queue.options import QueueOptions, options_of
from reservable.queue.statuses import Value
from reservable.sqlalchemy.queue import calls, standing
from reservable.sqlalchemy.queue.columns import QueueColumns
from reservable.sqlalchemy.queue.guard import before_flush
from reservable.sqlalchemy.queue.operators import SessionOperator, after_soft_rollback, enqueue
from reservable.sqlalchemy.queue.pruning import prune
from reservable.sqlalchemy.queue.queues import add_index, queue_of
from reservable.sqlalchemy.queue.telling import after_flush
from reservable.sqlalchemy.queue.workers import Workers

if TYPE_CHECKING:  # it cannot be had without greenlet
    from sqlalchemy.ext.asyncio import AsyncSession


class Queued(Workers, QueueColumns):
    """Rows that are pieces of work: each is claimed by one worker at a time, with a lease.

    A worker's verbs (`claim`, `start`, `work`, `run`, `reap`, `prune`, and those of a lease) run in short transactions of their
    own; the session says only which database is meant. An operator's (`enqueue`, `pause`, `resume`, `cancel`, `retry`)
    run in the session's transaction, say whether the row was in a status they are for, and commit with it.

    `__queue__ = QueueOptions(...)` sets what is not the default. Worker's verbs raise `BackendError` when the database
    fails, an operator's what the session raises; all raise `NotSupported` for one that is not PostgreSQL, MySQL 8, MariaDB 10.6 or later, or SQLite.
    """

    __queue__: ClassVar[QueueOptions] = QueueOptions()

    def __init_subclass__(cls, **options: Any) -> None:
        options_of(cls)  # a bad one is told at once
        super().__init_subclass__(**options)

    @property
    def last_error(self) -> Entry | None:
        """The newest failure: `type`, `message`, `traceback`, `attempt`, `at`; None when there is none."""
        return self.errors[-1] if self.errors else None

    # A worker's

    @classmethod
    def claim(  # noqa: PLR0917 - as the contract has it
        cls,
        session: Session,
        limit: int = 1,
        where: ColumnElement[bool] | None = None,
        worker: str | None = None,
        step: str | None = None,
        renew: bool = False,
    ) -> list[Lease]:
        """Lease the next rows, at most `limit`, in order of priority, due time and primary key.

        `where` is SQL that they match as well, `step` the step they have come to, `worker` text for people. With
        `renew` they are kept alive from now on; a `with` block does so by itself.
        """
        asked = calls.claim(queue_of(cls), limit, where, worker, step)
        return calls.leases(session, queue_of(cls), asked, renew=renew)

    @classmethod
    async def aclaim(  # noqa: PLR0917 - as above
        cls,
        session: AsyncSession,
        limit: int = 1,
        where: ColumnElement[bool] | None = None,
        worker: str | None = None,
        step: str | None = None,
        renew: bool = False,
    ) -> list[AsyncLease]:
        """`claim` for asyncio. Cancelled, it gives back what it has claimed."""
        asked = calls.claim(queue_of(cls), limit, where, worker, step)
        return await calls.aleases(session, queue_of(cls), asked, renew=renew)

    @classmethod
    @contextmanager
    def start(
        cls, session: Session, pk: Any, skip_error: bool = False, ignore_due: bool = False
    ) -> Iterator[Lease]:
        """Lease one row by its primary key, for a `with` block.

        `skip_error`: an exception of the body is logged, and stays inside. `ignore_due`: also before it is due.
        Raises `NotClaimable`, whose `reason` says why in a word.
        """
        asked = Start(queue_of(cls), pk, ignore_due=ignore_due)
        [lease] = calls.leases(session, queue_of(cls), asked, skip_error=skip_error)
        with lease:
            yield lease

    @classmethod
    @asynccontextmanager
    async def astart(
        cls, session: AsyncSession, pk: Any, skip_error: bool = False, ignore_due: bool = False
    ) -> AsyncIterator[AsyncLease]:
        """`start` for asyncio."""
        asked = Start(queue_of(cls), pk, ignore_due=ignore_due)
        [lease] = await calls.aleases(session, queue_of(cls), asked, skip_error=skip_error)
        async with lease:
            yield lease

    @classmethod
    def reap(cls, session: Session) -> int:
        """Have rows fail whose lease is over with no attempts left; how many. Claims do so in passing."""
        return reap(calls.desk(session, queue_of(cls)))

    @classmethod
    async def areap(cls, session: AsyncSession) -> int:
        """`reap` for asyncio."""
        return await calls.awaited(cls.reap, session)

    @classmethod
    def prune(cls, session: Session, older_than: Any) -> int:
        """Delete rows that ended so long ago (a delay); how many.

        The lease of a row that is gone is no lease on another with the same key, unless that is claimed with the same
        token: so do not give a key again while a worker may still believe in the old row. SQLite does so by itself,
        unless the table has `sqlite_autoincrement`.
        """
        queue = queue_of(cls)
        return prune(calls.desk(session, queue), queue, older_than)

    @classmethod
    async def aprune(cls, session: AsyncSession, older_than: Any) -> int:
        """`prune` for asyncio."""
        return await calls.awaited(cls.prune, session, older_than)

    # An operator's

    def enqueue(self, session: Session, at: Any = None) -> bool:
        """Queue the row, due now or `at` (an aware datetime, or a delay): a new one, or one that has ended."""
        return enqueue(session, self, at)

    async def aenqueue(self, session: AsyncSession, at: Any = None) -> bool:
        """`enqueue` for asyncio."""
        return await calls.awaited(self.enqueue, session, at)

    def pause(self, session: Session) -> bool:
        """Take a pending or running row out of the queue; whoever works on it loses it."""
        return SessionOperator(session, self).pause()

    async def apause(self, session: AsyncSession) -> bool:
        """`pause` for asyncio."""
        return await calls.awaited(self.pause, session)

    def resume(self, session: Session, at: Any = None) -> bool:
        """Put a paused row back, due now or `at`."""
        return SessionOperator(session, self).resume(at)

    async def aresume(self, session: AsyncSession, at: Any = None) -> bool:
        """`resume` for asyncio."""
        return await calls.awaited(self.resume, session, at)

    def cancel(self, session: Session, reason: str | None = None) -> bool:
        """End a row that has not ended; the reason is stored as its last error."""
        return SessionOperator(session, self).cancel(reason)

    async def acancel(self, session: AsyncSession, reason: str | None = None) -> bool:
        """`cancel` for asyncio."""
        return await calls.awaited(self.cancel, session, reason)

    def retry(self, session: Session) -> bool:
        """Queue a failed or cancelled row again, with all its attempts."""
        return SessionOperator(session, self).retry()

    async def aretry(self, session: AsyncSession) -> bool:
        """`retry` for asyncio."""
        return await calls.awaited(self.retry, session)

    @classmethod
    def status_counts(cls, session: Session, where: ColumnElement[bool] | None = None) -> dict[Value, int]:
        """How many rows have each stored status, zeros too, as the session's transaction sees it."""
        return standing.counts(session, queue_of(cls), calls.conditions(queue_of(cls), where))

    @classmethod
    async def astatus_counts(
        cls, session: AsyncSession, where: ColumnElement[bool] | None = None
    ) -> dict[Value, int]:
        """`status_counts` for asyncio."""
        return await calls.awaited(cls.status_counts, session, where)

    # For `where()`

    @classmethod
    def due(cls) -> ColumnElement[bool]:
        """SQL: rows that can be claimed now."""
        return standing.due(queue_of(cls))

    @classmethod
    def running(cls) -> ColumnElement[bool]:
        """SQL: rows whose lease is not over."""
        return standing.running(queue_of(cls))

    @classmethod
    def expired(cls) -> ColumnElement[bool]:
        """SQL: rows that are running, and whose lease is over."""
        return standing.expired(queue_of(cls))


event.listen(Queued, "after_mapper_constructed", add_index, propagate=True)
event.listen(Session, "before_flush", before_flush)
event.listen(Session, "after_flush", after_flush)
event.listen(Session, "after_soft_rollback", after_soft_rollback)
