"""What a lease believes of itself between its calls, and how it is kept alive."""

from __future__ import annotations

from collections.abc import Callable

from reservable.grants import Grant
from reservable.handles.standing import Standing
from reservable.leasing.claiming import Claimed
from reservable.leasing.columns import microseconds, span
from reservable.leasing.desk import Desk, RowName


class Hold(Standing):
    """The grant of one lease; the service that keeps reservations alive keeps it alive, too."""

    def __init__(self, desk: Desk, claimed: Claimed, worker: str, on_lost: Callable[[], None]) -> None:
        super().__init__(ledger=None, renew=False, on_lost=None, at_least=None)
        self.backend = desk
        self.name = RowName.of(desk.queue, claimed.pk)
        self.owner = worker
        self.lifetime = desk.queue.options.lifetime
        self.told: Callable[[], None] = on_lost
        until = microseconds(claimed.row.retry_at)
        since = until - span(self.lifetime)
        self.grant = Grant(self.name, str(claimed.token), claimed.token, since, until)
        self.adopt(self.grant, claimed.deadline)

    @property
    def is_lost(self) -> bool:
        return self._is_lost

    @property
    def is_here(self) -> bool:
        """Whether this process has claimed it, and not the one that it was forked from."""
        return self._here

    def beat(self) -> None:
        """Have it kept alive from now on, for as long as this thread or task is at work.

        A database in memory has no connection for that beside the caller's.
        """
        if self.backend.can_beat:
            self.rest()  # it may have been kept for another, which claimed it
            self.keep_alive(self.lifetime, None)

    def rest(self) -> None:
        """No heartbeat from now on, until `go_on`; what is on its way comes to nothing."""
        self._let_go()

    def go_on(self) -> None:
        """Heartbeats again, after `rest`."""
        self._watch_over()

    def moved(self, until: int, deadline: float, since: float) -> None:
        """A heartbeat of the caller's own, sent at `since`, has set another end."""
        self._moved(self.grant, until, deadline, since)

    def end(self) -> None:
        """The row was finished."""
        self._end(self.grant)
        self._tell("released", self.grant)

    def gone(self) -> None:
        """The row is no longer ours."""
        self.rest()
        self.lose(self.grant)

    def _mark_lost(self) -> None:
        self.told()
