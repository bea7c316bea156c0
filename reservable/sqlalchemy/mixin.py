"""`Reservable`: what a mapped class gains by one more base class."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement
from sqlalchemy.orm import object_session
from sqlalchemy.orm.attributes import instance_state

from reservable import durations
from reservable.config import owner_label
from reservable.handles import Holdings, Reservation
from reservable.sqlalchemy import homes
from reservable.sqlalchemy.expressions import reserved, unreserved
from reservable.sqlalchemy.identity import must_exist, row_of


class Reservable:
    """A row that one worker at a time can take for one purpose for a while.

    `key` names the purpose: text, an enum member, a class, a function, or an object, which stands for its
    class. `duration` is a lifetime: seconds, "+6 hours", a timedelta, an aware datetime. The session is neither
    committed, rolled back nor flushed, and an instance that was never flushed cannot be reserved
    (`UnidentifiedInstance`).

    A class may set `__reservable_name__` (its part of the names, instead of its table's) and
    `__reservable_backend__` (what `configure` takes).
    """

    def reserve(self, key: Any, duration: Any = 60, *, wait: Any = None) -> bool:
        """Take the row for this purpose: True when granted, False when somebody holds it.

        `wait`: how long to keep trying (seconds or any duration; None: one try). What this instance holds already
        is refused too, and not disturbed.

        Raises `InvalidKey`, `InvalidDuration`, `UnidentifiedInstance`, and `BackendError` when the store fails.
        """
        must_exist(self)
        return _handle(self, key, duration, wait=wait).acquire()

    def release(self, key: Any) -> bool:
        """Give the row back; True when something was released.

        An instance that has tried to reserve the key gives back its own grant and nothing else, so
        `finally: video.release(key)` is always safe. One that never tried is an operator's: it releases
        whoever holds the key.
        """
        holdings = holdings_of(self)
        name = _name(self, key)
        handle = holdings.to_release(name)
        if handle is not None:
            return handle.release()  # type: ignore[attr-defined, no-any-return]
        if holdings.has_tried(name):
            return False
        return _handle(self, key).break_()

    def is_reserved(self, key: Any) -> bool:
        """Whether anybody holds the row for this purpose now: a pure read."""
        return _handle(self, key).holder() is not None

    def reservation(
        self, key: Any, duration: Any = 60, *, wait: Any = None, on_error: str = "release"
    ) -> Reservation:
        """A handle, for `with` blocks and for everything beyond reserve and release.

        While this instance holds the key: the handle on that grant. In a `with` block: `AlreadyReserved` when
        refused; releases at the end; `on_error="keep"` leaves the reservation standing when the body raises an
        `Exception`, so that a failing row is not tried again before its time is up.
        """
        durations.lifetime(duration)  # a bad one is refused whether or not it would be used
        held = holdings_of(self).holding(_name(self, key))
        if isinstance(held, Reservation):
            return held
        must_exist(self)
        return _handle(self, key, duration, wait=wait, on_error=on_error)

    @classmethod
    def reserved(cls, key: Any) -> ColumnElement[bool]:
        """SQL for `where()`: rows that are reserved for this purpose now.

        `NotSupported` while reservations live in a store that is no database.
        """
        return reserved(cls, key)

    @classmethod
    def unreserved(cls, key: Any) -> ColumnElement[bool]:
        """SQL for `where()`: rows that nobody has reserved for this purpose now. As `reserved`."""
        return unreserved(cls, key)


def holdings_of(instance: Any) -> Holdings:
    """What this instance has reserved; lives and dies with it."""
    state = instance_state(instance)
    # copy.copy() gives the copy the state of its original; what is noted there is the original's.
    info = state.info if state.obj() is instance else vars(instance)
    holdings = info.get("_reservable_holdings")
    if holdings is None:
        holdings = info.setdefault("_reservable_holdings", Holdings())
    return holdings  # type: ignore[no-any-return]


def _name(instance: Any, key: Any) -> str:
    identity, values = row_of(instance)
    return homes.located(identity, object_session(instance)).name(values, key)


def _handle(instance: Any, key: Any, duration: Any = 60, **options: Any) -> Reservation:
    identity, values = row_of(instance)
    session = object_session(instance)
    name = homes.located(identity, session).name(values, key)
    backend = homes.backend_of(identity.mapper, session)
    return Reservation(backend, name, duration, owner=owner_label(), ledger=holdings_of(instance), **options)
