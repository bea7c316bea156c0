"""Every error the library raises: one root, one class for each kind of trouble.

Granted and refused are return values and never errors; *lost* and *broken* have classes of their own,
so that "somebody else has it", "mine is over" and "the store failed" can never be taken for one another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reservable.grants import Holder


class ReservableError(Exception):
    """The root: `except ReservableError` catches whatever this library raises on purpose."""


class InvalidDuration(ReservableError, ValueError):
    """A duration that cannot be read, or that is not strictly positive where a lifetime is asked for."""


class InvalidKey(ReservableError, ValueError):
    """A key that has no stable text of its own, or one that is too long to be part of a name."""


class InvalidHandle(ReservableError, ValueError):
    """Text given to `Reservation.loads` that `Reservation.dumps` did not make."""


class UnidentifiedInstance(ReservableError, ValueError):
    """The instance has no complete primary key yet, or its row is known to be deleted."""


class AlreadyReserved(ReservableError):
    """Somebody else holds the name, so the body of the `with` block was not run.

    `holder` says who and until when, or is None when they let go while we were asking.
    """

    def __init__(self, name: str, holder: Holder | None = None) -> None:
        super().__init__(name, holder)
        self.name = name
        self.holder = holder

    def __str__(self) -> str:
        if self.holder is None:
            return f"{self.name} is already reserved"
        return f"{self.name} is already reserved by {self.holder.owner} until {self.holder.until.isoformat()}"


class ReservationLost(ReservableError):
    """The reservation is over or was taken while this side still meant to hold it."""


class LeaseLost(ReservableError):
    """The lease of a queued row is no longer ours: nothing was written."""


class NotClaimable(ReservableError):
    """A queued row that cannot be started now; `reason` says why in one word or two."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message, reason)
        self.reason = reason

    def __str__(self) -> str:
        return str(self.args[0])


class BackendError(ReservableError):
    """The store failed or could not be reached, so it is not known who holds what.

    The driver's own error is the cause (`__cause__`).
    """

    nothing_done = False
    """Whether it is certain that what was asked for was not done."""


class NotSupported(ReservableError, TypeError):
    """Something this backend, dialect or statement cannot do; the text names it and what to use instead."""


class ConfigurationError(ReservableError, ValueError):
    """A setting that cannot work: an unknown URL, a prefix that is too long, no backend where one is needed."""
