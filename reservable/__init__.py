"""One row, one worker, for a while: reservations for SQLAlchemy models, in Redis or in the database you have.

Every public name is loaded when it is first used: importing the package loads no driver and no ORM.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reservable.backends.asynchronous import AsyncBackend as AsyncBackend
    from reservable.backends.base import Backend as Backend
    from reservable.config import configure as configure
    from reservable.errors import AlreadyReserved as AlreadyReserved
    from reservable.errors import BackendError as BackendError
    from reservable.errors import ConfigurationError as ConfigurationError
    from reservable.errors import InvalidDuration as InvalidDuration
    from reservable.errors import InvalidHandle as InvalidHandle
    from reservable.errors import InvalidKey as InvalidKey
    from reservable.errors import LeaseLost as LeaseLost
    from reservable.errors import NotClaimable as NotClaimable
    from reservable.errors import NotSupported as NotSupported
    from reservable.errors import ReservableError as ReservableError
    from reservable.errors import ReservationLost as ReservationLost
    from reservable.errors import UnidentifiedInstance as UnidentifiedInstance
    from reservable.grants import Holder as Holder
    from reservable.handles import SKIPPED as SKIPPED
    from reservable.handles import AsyncReservation as AsyncReservation
    from reservable.handles import Reservation as Reservation
    from reservable.handles import areservation as areservation
    from reservable.handles import reservation as reservation
    from reservable.handles import reserving as reserving
    from reservable.leasing.async_lease import AsyncLease as AsyncLease
    from reservable.leasing.guard import QueueColumnWarning as QueueColumnWarning
    from reservable.leasing.lease import Lease as Lease
    from reservable.queue.backoff import Backoff as Backoff
    from reservable.queue.options import QueueOptions as QueueOptions
    from reservable.queue.signals import Cancel as Cancel
    from reservable.queue.signals import Retry as Retry
    from reservable.queue.signals import Snooze as Snooze
    from reservable.queue.statuses import Status as Status
    from reservable.sqlalchemy.async_finding import aeach_reserved as aeach_reserved
    from reservable.sqlalchemy.async_finding import afirst_reserved as afirst_reserved
    from reservable.sqlalchemy.async_finding import afirst_reserved_of as afirst_reserved_of
    from reservable.sqlalchemy.async_finding import atake_reserved as atake_reserved
    from reservable.sqlalchemy.finding import each_reserved as each_reserved
    from reservable.sqlalchemy.finding import first_reserved as first_reserved
    from reservable.sqlalchemy.finding import first_reserved_of as first_reserved_of
    from reservable.sqlalchemy.finding import take_reserved as take_reserved
    from reservable.sqlalchemy.mixin import Reservable as Reservable
    from reservable.sqlalchemy.query import ReservableQuery as ReservableQuery
    from reservable.sqlalchemy.queue.mixin import Queued as Queued

__version__ = "0.1.0"

_HOMES = {
    "AsyncBackend": "reservable.backends.asynchronous",
    "Backend": "reservable.backends.base",
    "configure": "reservable.config",
    "Holder": "reservable.grants",
    "Backoff": "reservable.queue.backoff",
    "QueueOptions": "reservable.queue.options",
    "Status": "reservable.queue.statuses",
    **dict.fromkeys(("Cancel", "Retry", "Snooze"), "reservable.queue.signals"),
    "AsyncLease": "reservable.leasing.async_lease",
    "Lease": "reservable.leasing.lease",
    "Queued": "reservable.sqlalchemy.queue.mixin",
    "QueueColumnWarning": "reservable.leasing.guard",
    "Reservable": "reservable.sqlalchemy.mixin",
    "ReservableQuery": "reservable.sqlalchemy.query",
    **dict.fromkeys(
        ("SKIPPED", "AsyncReservation", "Reservation", "areservation", "reservation", "reserving"),
        "reservable.handles",
    ),
    **dict.fromkeys(
        ("aeach_reserved", "afirst_reserved", "afirst_reserved_of", "atake_reserved"),
        "reservable.sqlalchemy.async_finding",
    ),
    **dict.fromkeys(
        ("each_reserved", "first_reserved", "first_reserved_of", "take_reserved"),
        "reservable.sqlalchemy.finding",
    ),
    **dict.fromkeys(
        (
            "AlreadyReserved",
            "BackendError",
            "ConfigurationError",
            "InvalidDuration",
            "InvalidHandle",
            "InvalidKey",
            "LeaseLost",
            "NotClaimable",
            "NotSupported",
            "ReservableError",
            "ReservationLost",
            "UnidentifiedInstance",
        ),
        "reservable.errors",
    ),
}

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
