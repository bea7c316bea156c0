"""A worker's own writes and the completion of its row, in one commit of the worker's own transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable

from reservable.errors import NotSupported
from reservable.leasing import statements
from reservable.leasing.desk import Desk

if TYPE_CHECKING:
    from reservable.leasing.leases import LeaseBase

OLD = (
    "this session's transaction began before the row was claimed, or kept alive, and still sees it as it was then: "
    "commit or roll it back first"
)


class Caller(ABC):
    """The worker's own transaction, as its ORM has it."""

    is_committed = False
    """Whether it is known to be, although something was raised."""

    @abstractmethod
    def opened(self) -> AbstractContextManager[Any]:
        """The transaction: it is committed at the end, and rolled back where something is raised."""

    @abstractmethod
    def changed(self, statement: Executable) -> int:
        """How many rows a statement has changed in it."""

    @abstractmethod
    def row(self, fence: Any) -> Any:
        """The row for which this is true, loaded anew."""

    @abstractmethod
    def keeps(self, row: Any) -> bool:
        """Whether the row is there still, once all is written that the caller has changed."""


@contextmanager
def transaction(lease: LeaseBase, desk: Desk, caller: Caller) -> Iterator[Any]:
    """The row, locked; what the body has written is committed along with the completion."""
    queue, fence = desk.queue, desk.leased([lease._held])
    lease._hold.rest()  # its heartbeats would wait for our lock, and until then nobody else can take the row
    try:
        with caller.opened():
            # Locks this row in every database, and no other, as a SELECT may that loads relations along; and MySQL
            # shows a transaction with an old snapshot the newest row if it has itself made a change to it.
            retry_at = queue.columns["retry_at"]
            if not caller.changed(queue.table.update().values({retry_at: retry_at + 1}).where(fence)):
                _check_snapshot(desk, lease)
                lease._must_be_mine(False)
            row = caller.row(fence)
            yield row
            if caller.keeps(row):  # one that is gone needs no completion
                columns = queue.own_values(lease._values) | lease._following()
                done = statements.moved(queue, lease._completion, values=columns).where(fence)
                lease._must_be_mine(caller.changed(done))
    except BaseException:
        if caller.is_committed:
            lease._end()
        elif not lease._hold.is_lost:
            lease._hold.go_on()
        raise
    lease._end()


def _check_snapshot(desk: Desk, lease: LeaseBase) -> None:
    """Raises `NotSupported` when the row is the worker's, and its transaction cannot see that."""
    if not desk.in_memory and desk.still_leased([lease._held]):
        raise NotSupported(OLD)
