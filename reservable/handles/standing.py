"""What a handle believes about its grant: whether it stands, until when, and who is told when it is lost.

Local time is the monotonic clock, counted from before a request was sent, so that what this side believes is
never more than the truth: when it says "held", it is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from reservable import durations, keepalive
from reservable.grants import Grant, utc
from reservable.handles.tenure import Tenure

log = logging.getLogger("reservable")


class Ledger(Protocol):
    """Whoever keeps account of the handles made for one object."""

    def tried(self, handle: Any) -> None:
        """The handle is about to ask for its name."""

    def granted(self, handle: Any) -> None:
        """The handle holds its name now."""

    def must_be_blocking(self) -> None:
        """Raises where blocking code must not be called."""


class Standing:
    """The grant of one handle, and what becomes of it."""

    backend: Any
    name: str
    owner: str
    lifetime: timedelta
    """What was asked for, and what each renewal asks for again, as far as `renewal` lets it."""

    def __init__(
        self,
        *,
        ledger: Ledger | None,
        renew: bool,
        on_lost: Callable[[Any], Any] | None,
        at_least: timedelta | datetime | None,
    ) -> None:
        self.renewing = renew
        self._ledger = ledger
        self._on_lost = on_lost
        self._at_least = at_least
        self._until: datetime | None = None
        """The instant beyond which nothing is asked for, where one was said."""
        self._tenure: Tenure | None = None
        self._kept_for: keepalive.AtWork | None = None

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
        """Seconds left, never more than the truth; 0.0 outside a grant, and when its release was asked for."""
        tenure = self._tenure
        return max(0.0, tenure.deadline - time.monotonic()) if tenure is not None and tenure.believed else 0.0

    @property
    def held(self) -> bool:
        """Whether this side holds the name as far as it knows; asks nobody (`check` does).

        False as soon as a release was asked for, although its answer may not have come.
        """
        tenure = self._tenure
        return tenure is not None and tenure.believed and time.monotonic() < tenure.deadline

    @property
    def _grant(self) -> Grant | None:
        tenure = self._tenure
        return tenure.grant if tenure is not None and not tenure.over else None

    @property
    def _here(self) -> bool:
        return self._tenure is not None and self._tenure.here

    @property
    def _is_lost(self) -> bool:
        return self._tenure is not None and self._tenure.lost

    # What becomes of it; from any thread

    def adopt(self, grant: Grant, deadline: float) -> None:
        """Take over a grant; `deadline` is the end of its lifetime on this side's monotonic clock."""
        self._stand_on(Tenure(grant, deadline))
        self._tell("granted", grant)

    def resume(self, grant: Grant, left: float, not_before: float = 0.0) -> None:
        """Take over a grant that was made elsewhere, with so many seconds left; it is free `not_before` so many."""
        now = time.monotonic()
        tenure = Tenure(grant, now + left)
        if not_before > 0:
            tenure.free_at = now + not_before
        self._stand_on(tenure)

    def share(self, other: Standing) -> None:
        """Be another handle on the grant of that one, if it has one."""
        tenure = other._tenure
        if tenure is not None and tenure.mine:
            self._stand_on(tenure)

    def _stand_on(self, tenure: Tenure) -> None:
        self._tenure = tenure
        tenure.join(self)
        self._kept_for = None
        if self._at_least is not None:
            free_at = tenure.since + seconds_of(self._at_least)
            if self._until is not None:
                free_at = min(free_at, tenure.deadline)
            tenure.free_at = max(tenure.free_at, free_at)
        if self._ledger is not None:
            self._ledger.granted(self)
        self._found()
        self._watch_over()

    def keep_alive(self, duration: Any, on_lost: Callable[[Any], Any] | None) -> None:
        """Renew the grant that stands from now on, each time for that long."""
        self.renewing, self.lifetime = True, durations.lifetime(duration)
        self._until = durations.until(duration) if durations.moves(duration) else None
        self._on_lost = on_lost or self._on_lost
        self._kept_for = None
        self._watch_over()

    def tell_of_loss(self, on_lost: Callable[[Any], Any]) -> None:
        """Call this when the grant that stands is lost, instead of what was said before."""
        self._on_lost = on_lost
        self._watch_over()

    @property
    def renewal(self) -> timedelta:
        """What a renewal sets the time left to, now: no instant that was said is overrun."""
        if self._until is None:
            return self.lifetime
        return min(self.lifetime, max(self._until - datetime.now(UTC), durations.SHORTEST))

    def standing(self) -> tuple[Grant, float] | None:
        """The grant and its end on the monotonic clock; None when there is none, or none of this process."""
        tenure = self._tenure
        return (tenure.grant, tenure.deadline) if tenure is not None and tenure.mine else None

    def outlives(self, other: Standing) -> bool:
        """Whether there is something to give back of this grant, although the other was granted later."""
        if self.held:
            return True
        # One whose release is in doubt has ended for certain when its name was granted anew.
        tenure = self._tenure
        return self.name != other.name and tenure is not None and tenure.in_doubt and not tenure.over

    def prolong(self, grant: Grant, until: int, deadline: float) -> None:
        """The grant stands until then, unless another thread has ended it meanwhile."""
        tenure = self._tenure
        if tenure is not None and tenure.grant.token == grant.token:
            tenure.move(until, deadline)

    def _moved(self, grant: Grant, until: int, deadline: float, since: float) -> None:
        """Our own request, sent at `since`, has found or set another end."""
        self.prolong(grant, until, deadline)
        self._watch_over(since)

    def lose(self, grant: Grant) -> None:
        """The grant is over or was taken. Once: another thread may have released it, or learned of the loss."""
        tenure = self._tenure
        if tenure is not None and tenure.grant.token == grant.token:
            self._lose(tenure)

    def _end(self, grant: Grant) -> bool:
        """Whether it was this call that ended the grant."""
        tenure = self._tenure
        return tenure is not None and tenure.grant.token == grant.token and tenure.end()

    def _lose(self, tenure: Tenure) -> None:
        if tenure.end(lost=True):
            self._tell_all(tenure)

    def _tell_all(self, tenure: Tenure) -> None:
        """The grant is lost: every handle on it is told."""
        self._tell("lost", tenure.grant, logging.WARNING)
        for handle in tenure.handles():
            handle._learn_of_loss(tenure)

    # Keeping it alive

    def _watch_over(self, since: float | None = None) -> None:
        """Look after the grant; `since`: its end was moved, by a request that was sent then.

        On behalf of whoever was granted it, or asked to keep it alive, whoever it is that moves its end.
        """
        if self.renewing or self._on_lost is not None:
            self._kept_for = self._kept_for or keepalive.at_work()
            keepalive.keep(self, since, self._kept_for)

    def _let_go(self) -> None:
        """No more renewals: what is on its way comes too late."""
        if self._tenure is not None:
            self._let_all_go(self._tenure)

    def _let_all_go(self, tenure: Tenure, free_at: float | None = None) -> None:
        """As `_let_go`, for every handle on the grant."""
        for handle in tenure.handles():
            if handle._tenure is tenure and (handle.renewing or handle._on_lost is not None):
                keepalive.let_go(handle, free_at)

    # What is told

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

    def _learn_of_loss(self, tenure: Tenure) -> None:  # noqa: ARG002 - for those that have several in turn
        """Wake whoever waits for the loss of that grant, and call `on_lost`."""
        self._mark_lost()

    def _mark_lost(self) -> None:
        """The grant is lost, and there was never another one."""


def seconds_of(at_least: timedelta | datetime) -> float:
    """From now on."""
    if isinstance(at_least, datetime):
        return max(0.0, (at_least - datetime.now(UTC)).total_seconds())
    return at_least.total_seconds()
