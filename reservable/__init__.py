"""One row, one worker, for a while: reservations for SQLAlchemy models, in Redis or in the database you have.

Every public name is loaded when it is first used: importing the package loads no driver and no ORM.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reservable.backends.base import Backend as Backend
    from reservable.config import configure as configure
    from reservable.errors import AlreadyReserved as AlreadyReserved
    from reservable.errors import BackendError as BackendError
    from reservable.errors import ConfigurationError as ConfigurationError
    from reservable.errors import InvalidDuration as InvalidDuration
    from reservable.errors import InvalidHandle as InvalidHandle
    from reservable.errors import InvalidKey as InvalidKey
    from reservable.errors import NotSupported as NotSupported
    from reservable.errors import ReservableError as ReservableError
    from reservable.errors import ReservationLost as ReservationLost
    from reservable.errors import UnidentifiedInstance as UnidentifiedInstance
    from reservable.grants import Holder as Holder
    from reservable.handles import Reservation as Reservation
    from reservable.handles import reservation as reservation
    from reservable.sqlalchemy.finding import each_reserved as each_reserved
    from reservable.sqlalchemy.finding import first_reserved as first_reserved
    from reservable.sqlalchemy.finding import first_reserved_of as first_reserved_of
    from reservable.sqlalchemy.finding import take_reserved as take_reserved
    from reservable.sqlalchemy.mixin import Reservable as Reservable
    from reservable.sqlalchemy.query import ReservableQuery as ReservableQuery

__version__ = "0.1.0"

_HOMES = {
    "Backend": "reservable.backends.base",
    "configure": "reservable.config",
    "Holder": "reservable.grants",
    "Reservation": "reservable.handles",
    "reservation": "reservable.handles",
    "Reservable": "reservable.sqlalchemy.mixin",
    "ReservableQuery": "reservable.sqlalchemy.query",
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
