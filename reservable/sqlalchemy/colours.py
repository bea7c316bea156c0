"""Where blocking code and asyncio part in finding: the search itself is one, and blocking code in both.

For asyncio it runs in a greenlet of SQLAlchemy's, as the ORM does.
"""

# The methods of a protocol are their docstrings.
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from sqlalchemy.orm import Mapper, Session
from sqlalchemy.util import await_only, greenlet_spawn

from reservable.backends.base import Backend
from reservable.backends.opening import Store
from reservable.cancelling import settled
from reservable.finding.search import Purpose
from reservable.handles import AsyncReservation, Handle, Reservation
from reservable.sqlalchemy import homes
from reservable.sqlalchemy.greenlets import InGreenlet, in_greenlet, within
from reservable.sqlalchemy.mixin import holdings_of

T = TypeVar("T")


class Home(NamedTuple):
    """Where a model's reservations are asked for, and how the handles on them are made."""

    backend: Backend
    """For the blocking code here."""
    handles: type[Handle]
    theirs: Any
    """The backend of the handles."""
    store: Store

    def handle(self, instance: Any, name: str, purpose: Purpose) -> Handle:
        """A handle that the instance keeps account of."""
        handle = purpose.handle(self.handles, self.theirs, name, holdings_of(instance))
        handle.store = self.store
        return handle


class Colour(Protocol):
    """Blocking code, or asyncio."""

    def home(self, mapper: Mapper[Any], session: Session | None) -> Home:
        """The home of this mapper's reservations."""

    def see_through(self, work: Callable[[], T], undo: Callable[[T | None], object]) -> T:
        """What the work returns. Where it can be cancelled half-way, it is not, and is undone instead.

        `undo` is given the outcome, None where the loop's end has cut it off and nobody knows it; it may be called
        twice.
        """


class Blocking:
    """Called by blocking code."""

    def home(self, mapper: Mapper[Any], session: Session | None) -> Home:
        store = homes.store_of(mapper, session)
        backend = homes.backend_on(store, mapper.class_, session)
        inner = within(backend.backend) if isinstance(backend, InGreenlet) else backend
        return Home(inner, Reservation, backend, store)

    def see_through(self, work: Callable[[], T], undo: Callable[[T | None], object]) -> T:
        if in_greenlet():  # in run_sync() it can be cancelled, too
            return _seen_through(work, undo)
        return work()


class Awaited:
    """Called by asyncio, in a greenlet."""

    def home(self, mapper: Mapper[Any], session: Session | None) -> Home:
        store = homes.store_of(mapper, session)
        backend = homes.async_backend_on(store, session)
        return Home(within(backend), AsyncReservation, backend, store)

    def see_through(self, work: Callable[[], T], undo: Callable[[T | None], object]) -> T:
        return _seen_through(work, undo)


def _seen_through(work: Callable[[], T], undo: Callable[[T | None], object]) -> T:
    async def undone(outcome: T | None) -> None:
        await greenlet_spawn(undo, outcome)

    return await_only(settled(greenlet_spawn(work), undone))
