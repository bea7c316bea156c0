"""The handles on reservations: what they decide, and how blocking code runs it."""

from reservable.handles.blocking import Reservation, reservation
from reservable.handles.holdings import Holdings

__all__ = ["Holdings", "Reservation", "reservation"]
