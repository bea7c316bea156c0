"""How a worker comes by its rows, in either colour: claims, pauses when there is nothing, and patience in outages."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from reservable import durations
from reservable.errors import BackendError, NotSupported
from reservable.leasing.asked import Claim
from reservable.leasing.claiming import Claimed
from reservable.leasing.desk import Desk
from reservable.leasing.soonest import seconds_until_due
from reservable.plans import pauses

log = logging.getLogger("reservable")

SHORTEST = 0.01
"""Seconds of the first pause, and of one that ends when a row comes due."""

WORTH_A_LOOK = 0.05
"""Seconds of a pause from which on it pays to ask when the next row is due."""


class Intake:
    """What one call of `work` or `run` takes rows by. All of it is blocking code; asyncio's runs in a greenlet."""

    def __init__(self, asked: Claim, idle: Any) -> None:
        self._asked = asked
        self._longest = durations.delay(idle).total_seconds()
        self._pauses = self._from_the_shortest()
        self._desk: Desk | None = None
        self._reached = False
        self.batch = asked.limit
        self.worker = asked.worker

    @property
    def desk(self) -> Desk:
        assert self._desk is not None, "open comes first"
        return self._desk

    def open(self, desk: Desk) -> None:
        """Begin at this desk."""
        self._desk = desk

    def open_for_many(self, desk: Desk) -> None:
        """As `open`, for threads or tasks that use it together."""
        self.open(desk)
        if not desk.can_beat:
            raise NotSupported(
                "threads and tasks need a connection each, and here is one for all (a database in memory, or the transaction "
                "of a test): use work or awork; or in Django's tests a TransactionTestCase, on SQLite with "
                "'TEST': {'NAME': 'test.sqlite'} in DATABASES, and in SQLAlchemy's a database in a file or on a server"
            )

    def claim(self, limit: int) -> list[Claimed]:
        """The next rows.

        A database that cannot be reached at all is the caller's to know (`BackendError`); one that was reached
        before is waited for, for it may only be restarted.
        """
        try:
            claimed = self._asked.next_at(self.desk, limit)
        except BackendError as error:
            if not self._reached:
                raise
            log.warning("%s: nothing can be claimed: %s", self._asked.queue.entity.__name__, error)
            return []
        self._reached = True
        if claimed:
            self._pauses = self._from_the_shortest()
        return claimed

    def pause(self) -> float:
        """Seconds to wait after a claim that found nothing: longer every time, but awake when a row comes due."""
        pause = next(self._pauses)
        if pause < WORTH_A_LOOK:
            return pause
        try:
            due = seconds_until_due(self.desk)
        except BackendError:  # told by the next claim
            return pause
        return pause if due is None else min(pause, max(due, SHORTEST))

    def _from_the_shortest(self) -> Iterator[float]:
        return pauses(min(SHORTEST, self._longest), self._longest)
