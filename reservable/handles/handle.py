"""What a handle on one reservation decides, as plans for both colours: one name, one token, one lifetime.

Local time is the monotonic clock, counted from before a request was sent, so that what this side believes is
never more than the truth: when it says "held", it is.
"""

from __future__ import annotations

import logging
import os
import time
from dataclasses import replace
from datetime import datetime
from secrets import token_hex
from typing import Any, NamedTuple, Protocol

from reservable import durations, names
from reservable.errors import AlreadyReserved, BackendError, ConfigurationError, ReservationLost
from reservable.grants import MICROSECOND, Grant, Released, utc
from reservable.handles.dumped import dump
from reservable.plans import Pause, Plan
from reservable.waiting import Waiting

log = logging.getLogger("reservable")

ON_ERROR = ("release", "keep")


class Ask(NamedTuple):
    """The step that asks the backend for one of its verbs."""

    verb: str
    arguments: tuple[Any, ...]


class Ledger(Protocol):
    """Whoever keeps account of the handles made for one object."""

    def tried(self, handle: Any) -> None:
        """The handle is about to ask for its name."""

    def granted(self, handle: Any) -> None:
        """The handle holds its name now."""


class Handle:
    """The state and the plans of a reservation; `Reservation` performs them for blocking code."""

    def __init__(
        self,
        backend: Any,
        name: str,
        duration: Any = 60,
        *,
        key: str | None = None,
        owner: str = "",
        wait: Any = None,
        on_error: str = "release",
        ledger: Ledger | None = None,
    ) -> None:
        if on_error not in ON_ERROR:
            raise ConfigurationError(f"on_error is {on_error!r}: use one of {', '.join(map(repr, ON_ERROR))}")
        self.backend = backend
        self.name = name
        self.key = names.decode(name.rpartition(":")[2]) if key is None else key
        self.owner = owner
        self._lifetime = durations.lifetime(duration)
        self._wait = durations.wait(wait)
        self._on_error = on_error
        self._ledger = ledger
        self._grant: Grant | None = None
        self._deadline = 0.0
        self._pid = 0
        self._is_lost = False

    # What this side believes

    @property
    def token(self) -> str | None:
        """The secret that proves ownership; None outside a grant. Keep it out of logs."""
        return self._grant.token if self._grant is not None else None

    @property
    def fence(self) -> int | None:
        """A number that only grows for this name: hand it to outside systems, which refuse smaller ones.

        Kleppmann, "How to do distributed locking" (2016), calls it a fencing token.
        """
        return self._grant.fence if self._grant is not None else None

    @property
    def expires_at(self) -> datetime | None:
        """When the reservation runs out, by the store's clock, aware and in UTC; None outside a grant."""
        return utc(self._grant.until) if self._grant is not None else None

    @property
    def remaining(self) -> float:
        """Seconds left, never more than the truth; 0.0 outside a grant."""
        return max(0.0, self._deadline - time.monotonic()) if self._mine else 0.0

    @property
    def held(self) -> bool:
        """Whether this side holds the name as far as it knows; asks nobody (`check` does)."""
        return self._mine and time.monotonic() < self._deadline

    @property
    def _mine(self) -> bool:
        # A forked child has a copy of the handle and must not act on its parent's reservation.
        return self._grant is not None and self._pid == os.getpid()

    # The plans

    def acquiring(self, wait: float) -> Plan[bool]:
        """Try until granted or the wait is over. While held: False, and undisturbed."""
        if self._ledger is not None:
            self._ledger.tried(self)
        if self.held:
            return False
        waiting = Waiting(wait)
        while True:
            granted = yield from self._try()
            if granted:
                return True
            if waiting.over:
                return False
            if waiting.curious:
                holder = yield Ask("holder", (self.name,))
                if holder is not None:
                    waiting.learned(holder.remaining)
            yield Pause(waiting.pause())

    def _try(self) -> Plan[bool]:
        token = token_hex(16)
        sent = time.monotonic()
        deadline = sent + self._lifetime.total_seconds()
        grant = yield Ask("acquire", (self.name, token, self.owner, self._lifetime))
        if grant is None:
            self._tell("refused", None)
            return False
        if time.monotonic() >= deadline:
            # The answer took longer than the lifetime: over before anybody could use it.
            yield Ask("release", (self.name, token))
            self._tell("refused", None)
            return False
        self.adopt(grant, deadline)
        return True

    def adopt(self, grant: Grant, deadline: float) -> None:
        """Take over a grant; `deadline` is the end of its lifetime on this side's monotonic clock."""
        self._grant, self._deadline, self._pid = grant, deadline, os.getpid()
        if self._ledger is not None:
            self._ledger.granted(self)
        self._is_lost = False
        self._found()
        self._tell("granted", grant)

    def resume(self, grant: Grant, left: float) -> None:
        """Take over a grant that was made elsewhere, with so many seconds left."""
        self._grant, self._deadline, self._pid = grant, time.monotonic() + left, os.getpid()

    def extending(self, duration: Any) -> Plan[bool]:
        """Set what is left to `duration`; False, and lost, when it is over or taken."""
        lifetime = durations.lifetime(duration)
        grant = self._grant
        if grant is None or not self._mine:
            return False
        sent = time.monotonic()
        until = yield Ask("extend", (self.name, grant.token, lifetime))
        deadline = sent + lifetime.total_seconds()
        if until is None or time.monotonic() >= deadline:  # refused, or over before the answer came
            self._lose(grant)
            return False
        self._prolong(grant, until, deadline)
        return True

    def releasing(self) -> Plan[bool]:
        """Give back our own grant and nothing else; the token is kept until the store has confirmed."""
        grant = self._grant
        if grant is None or not self._mine:
            return False
        released = yield Ask("release", (self.name, grant.token))
        if released is Released.UNKNOWN:
            # Asked twice, nothing found. Inside our own lifetime nobody else could have ended it but we.
            if time.monotonic() >= self._deadline:
                self._drop(grant)
                raise BackendError(
                    f"the release of {self.name} was asked twice and its time is over: whether it was released "
                    "or ran out cannot be known"
                )
            released = Released.YES
        if released is Released.YES:
            self._drop(grant)
            self._tell("released", grant)
            return True
        self._lose(grant)
        return False

    def checking(self) -> Plan[None]:
        """Ask the store; raises `ReservationLost` when the name is not ours (any more)."""
        grant = self._grant
        if grant is not None and self._mine:
            sent = time.monotonic()
            holder = yield Ask("holder", (self.name,))
            # The fence grows with every grant, so equal fences are the same grant.
            if holder is not None and holder.fence == grant.fence:
                # It may have been extended by another process that it was handed to.
                self._prolong(grant, (holder.until - utc(0)) // MICROSECOND, sent + holder.remaining)
                return
            self._lose(grant)
        raise ReservationLost(f"the reservation {self.name} is over or was taken by somebody else")

    def entering(self) -> Plan[None]:
        """Acquire for a `with` block; raises `AlreadyReserved` with the holder when refused."""
        granted = yield from self.acquiring(self._wait)
        if not granted:
            raise AlreadyReserved(self.name, (yield Ask("holder", (self.name,))))

    def exiting(self, error: BaseException | None) -> Plan[None]:
        """Release after a `with` block, so that the body's own exception always comes out.

        A lost reservation under a body that ended well raises `ReservationLost`.
        """
        if self._pid != os.getpid():
            return  # a forked child leaving its parent's block
        if isinstance(error, Exception) and self._on_error == "keep":
            return
        if self._grant is None:
            if error is None and self._is_lost:
                raise ReservationLost(f"the reservation {self.name} was lost while its block was running")
            return
        try:
            released = yield from self.releasing()
        except Exception as trouble:  # whatever it is, the body's own error is what comes out
            if error is None:
                raise
            log.warning("the release of %s failed: %s", self.name, trouble)
            return
        if not released and error is None:
            raise ReservationLost(f"the reservation {self.name} was over before its block had ended")

    # Handing over

    def dumps(self) -> str:
        """The grant as text for another process. Whoever has the text can release: keep it out of logs.

        Raises `ReservationLost` outside a grant.
        """
        grant = self._grant
        if grant is None or not self._mine:
            raise ReservationLost(f"{self.name} is not held by this handle, so there is nothing to hand over")
        return dump(self.backend.prefix, grant, self.owner)

    def __reduce__(self) -> Any:
        raise TypeError("a reservation is not pickled by accident: hand it over with dumps() and loads()")

    def __repr__(self) -> str:
        state = f"held, {self.remaining:.3f} s left" if self.held else "not held"
        return f"<{type(self).__name__} {self.name} ({state})>"

    # What is remembered and told

    def _prolong(self, grant: Grant, until: int, deadline: float) -> None:
        """The grant stands until then, unless another thread has ended it meanwhile."""
        if self._stands(grant):
            self._grant, self._deadline = replace(grant, until=until), deadline

    def _drop(self, grant: Grant) -> None:
        """Forget the grant, but not one that another thread was given meanwhile."""
        if self._stands(grant):
            self._grant = None

    def _lose(self, grant: Grant) -> None:
        # Only once: another thread may have released it, or learned of the loss, while we were asking.
        if self._stands(grant):
            self._grant = None
            self._is_lost = True
            self._mark_lost()
            self._tell("lost", grant, logging.WARNING)

    def _stands(self, grant: Grant) -> bool:
        """Whether the grant is still the one in force here; extending it does not make it another."""
        return self._grant is not None and self._grant.token == grant.token

    def _tell(self, event: str, grant: Grant | None, level: int = logging.DEBUG) -> None:
        if log.isEnabledFor(level):
            until = utc(grant.until).isoformat() if grant is not None else None
            fields = {"event": event, "name": self.name, "owner": self.owner, "until": until}
            # As arguments and, but for `name` (the logger's own), as attributes of the record.
            log.log(
                level,
                "%(event)s %(name)s owner=%(owner)s until=%(until)s",
                fields,
                extra={"reservation": self.name, "owner": self.owner, "until": until, "event": event},
            )

    def _found(self) -> None:
        """A new grant: whoever waits for the loss waits for that of this one."""

    def _mark_lost(self) -> None:
        """Wake whoever waits for the loss."""
