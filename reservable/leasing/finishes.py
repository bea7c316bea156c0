"""Rows that are done, completed many at a time. Nothing is told of them before they are stored."""

from __future__ import annotations

import logging
import time
from collections import deque
from contextlib import suppress

from reservable.errors import BackendError, LeaseLost
from reservable.leasing.completing import complete_all
from reservable.leasing.leases import LeaseBase

log = logging.getLogger("reservable")

LONGEST = 0.1
"""Seconds that a row which is done waits for others."""

AFTER_TROUBLE = 1.0
"""Seconds until the database is asked again that could not be reached."""


class Finishes:
    """The leases that wait to be completed, at most about `enough`; they are kept alive until they are.

    Any thread may add; one alone stores.
    """

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._done: deque[LeaseBase] = deque()
        self._first_at = 0.0
        self._not_before = 0.0

    def add(self, lease: LeaseBase) -> None:
        """The row's work is done."""
        if not self._done:
            self._first_at = time.monotonic()
        self._done.append(lease)

    @property
    def are_due(self) -> bool:
        """Whether there are enough of them, or the first has waited long enough."""
        now = time.monotonic()
        ripe = len(self._done) >= self._enough or now >= self._first_at + LONGEST
        return bool(self._done) and ripe and now >= self._not_before

    def store(self) -> None:
        """Complete them. What cannot be stored is kept for the next time, as long as its lease holds."""
        done = [self._done.popleft() for _ in range(len(self._done))]
        try:
            try:
                complete_all(done, patient=False)
            except BackendError:  # on account of one of them, or of all
                for lease in done:
                    _complete_or_fail(lease)
        except BackendError as error:
            log.warning("%d rows that are done cannot be stored, and are kept: %s", len(done), error)
        finally:
            left = [lease for lease in done if lease.is_open]
            self._done.extendleft(reversed(left))
            if left:
                self._not_before = time.monotonic() + AFTER_TROUBLE

    def store_last(self) -> None:
        """Complete them now or never; those that are not done again when their leases are over."""
        self.store()
        if self._done:
            log.error("%d rows were done and could not be stored: they will be done again", len(self._done))
        for lease in self._done:
            lease._hold.rest()  # so that it runs out, even if somebody keeps the lease


def _complete_or_fail(lease: LeaseBase) -> None:
    """Complete one alone; a row that takes its failure and not its completion has failed.

    Raises `BackendError` when it takes neither, for then it is the database.
    """
    if not lease.is_open:
        return
    try:
        complete_all([lease], patient=False)
    except BackendError as refused:
        with suppress(LeaseLost):
            lease._fail(refused, None)
        log.warning(
            "%s: its completion was refused, and is stored as a failure: %s", lease._hold.name, refused
        )
