"""The handles on reservations: what they decide, and how blocking code and asyncio run it."""

from reservable.handles.awaited import AsyncReservation, arelease
from reservable.handles.blocking import Reservation, release
from reservable.handles.functions import SKIPPED, reserving
from reservable.handles.handle import Handle
from reservable.handles.holdings import Holdings
from reservable.handles.named import areservation, reservation
from reservable.handles.options import Options
from reservable.handles.rows import ReservableRow, Rows

__all__ = [
    "SKIPPED",
    "AsyncReservation",
    "Handle",
    "Holdings",
    "Options",
    "ReservableRow",
    "Reservation",
    "Rows",
    "arelease",
    "areservation",
    "release",
    "reservation",
    "reserving",
]
