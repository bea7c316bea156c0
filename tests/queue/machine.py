"""Whatever comes after what: a queue compared with a model in plain Python, whichever ORM has its rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from reservable import Lease, LeaseLost, NotClaimable
from tests.queue.table_of_moves import FUTURE, PAST, Row

HOUR = timedelta(hours=1)
WHEN = st.sampled_from([PAST, FUTURE])
DELAYS = {PAST: 0, FUTURE: "1 hour"}

WRITES: dict[str, tuple[Callable[[Lease, str], Any], Callable[[Row, str], Any]]] = {
    "heartbeat": (lambda lease, _: lease.heartbeat(), lambda row, _: row.heartbeat()),
    "complete": (lambda lease, _: lease.complete(), lambda row, _: row.complete()),
    "fail": (lambda lease, _: lease.fail("no"), lambda row, _: row.fail()),
    "snooze": (lambda lease, when: lease.snooze(DELAYS[when]), lambda row, when: row.give_back(when)),
    "release": (lambda lease, _: lease.release(), lambda row, _: row.give_back(PAST)),
    "cancel": (lambda lease, _: lease.cancel("no use"), lambda row, _: row.abandon()),
}

OPERATIONS: dict[str, tuple[str, Callable[[str], tuple[Any, ...]], Callable[[Row, str], bool]]] = {
    "enqueue": ("enqueue", lambda when: (DELAYS[when],), lambda row, when: row.enqueue(when)),
    "pause": ("pause", lambda _: (), lambda row, _: row.pause()),
    "resume": ("resume", lambda when: (DELAYS[when],), lambda row, when: row.resume(when)),
    "cancel": ("cancel", lambda _: (), lambda row, _: row.cancel()),
    "cancel for a reason": ("cancel", lambda _: ("enough",), lambda row, _: row.cancel()),
    "retry": ("retry", lambda _: (), lambda row, _: row.retry()),
}
"""The verb, its arguments, and what it should do."""


class Machine(RuleBasedStateMachine):
    """Rows, leases that may be stale by now, and what should have become of them."""

    model: Any
    rows = Bundle("rows")
    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.expected: dict[int, Row] = {}
        self.empty()

    # How the rows are reached

    @abstractmethod
    def empty(self) -> None:
        """Delete all rows."""

    @abstractmethod
    def added(self, priority: int, when: str | None) -> int:
        """The key of a new row: enqueued, or not scheduled."""

    @abstractmethod
    def set_time(self, pk: int, moment: datetime) -> None:
        """Write the time of a row past the queue."""

    @abstractmethod
    def claimed(self, limit: int) -> list[Lease]:
        """Claim."""

    @abstractmethod
    def started(self, pk: int, *, ignore_due: bool) -> AbstractContextManager[Lease]:
        """Start."""

    @abstractmethod
    def operated(self, pk: int, verb: str, arguments: tuple[Any, ...], *, commit: bool) -> bool:
        """An operator's verb, in a transaction that is committed or rolled back."""

    @abstractmethod
    def reaped(self) -> int:
        """Reap."""

    @abstractmethod
    def all(self) -> list[Any]:
        """All rows, as they are stored."""

    # What there is

    @initialize(target=rows)
    def begin(self) -> Any:
        return multiple(*(self.add(0, PAST) for _ in range(3)))

    @rule(target=rows, priority=st.integers(0, 1), when=st.sampled_from([PAST, FUTURE, None]))
    def add(self, priority: int, when: str | None) -> int:
        pk, options = self.added(priority, when), self.model.__queue__
        self.expected[pk] = Row(options.max_attempts, options.strict, priority, retry_at=when)
        return pk

    @rule(pk=rows, when=WHEN)
    def time_goes_by(self, pk: int, when: str) -> None:
        """A due time or the end of a lease comes, or is put off."""
        if self.expected[pk].retry_at is None:
            return
        moment = datetime.now(UTC) + (-HOUR if when == PAST else HOUR)
        self.set_time(pk, moment)
        self.expected[pk].retry_at = when

    # Workers

    @rule(target=leases, limit=st.integers(1, 3))
    def claim(self, limit: int) -> Any:
        order = self._in_order()[:limit]
        met = {
            row.priority
            for row in self.expected.values()
            if len(order) < limit or row.priority >= self.expected[order[-1]].priority
        }
        found = self.claimed(limit)
        for row in self.expected.values():
            if row.used_up and row.priority in met:
                row.expire()
        assert [lease.pk[0] for lease in found] == order
        for lease in found:
            self._claimed(lease)
        return multiple(*found)

    @rule(target=leases, pk=rows, ignore_due=st.booleans())
    def start(self, pk: int, ignore_due: bool) -> Any:
        expected = self.expected[pk]
        if expected.used_up:
            expected.expire()
        reason = expected.reason(ignore_due=ignore_due)
        block = self.started(pk, ignore_due=ignore_due)
        if reason is not None:
            with pytest.raises(NotClaimable) as caught, block:
                pass
            assert caught.value.reason == reason
            return multiple()
        with block as lease:
            self._claimed(lease)
            lease.release()
        expected.give_back(PAST)
        return lease

    def _claimed(self, lease: Lease) -> None:
        expected = self.expected[lease.pk[0]]
        expected.claim()
        assert (lease.token, lease.attempt) == (expected.token, expected.attempts)
        assert lease.row.status == "running"

    @rule(lease=leases)
    def run_out(self, lease: Lease) -> None:
        """The lease is over, if it is still the one on its row."""
        if self.expected[lease.pk[0]].is_leased(lease.token):
            self.time_goes_by(lease.pk[0], PAST)

    @rule(lease=leases, verb=st.sampled_from(sorted(WRITES)), when=WHEN)
    def write(self, lease: Lease, verb: str, when: str) -> None:
        """One of the lease's own verbs, though it may be stale by now."""
        write, move = WRITES[verb]
        self._write(lease, lambda: write(lease, when), lambda row: move(row, when))

    @rule(lease=leases)
    def complete_all(self, lease: Lease) -> None:
        expected = self.expected[lease.pk[0]]
        mine = expected.is_leased(lease.token)
        assert Lease.complete_all([lease]) == ([lease] if mine else [])
        if mine:
            expected.complete()

    def _write(self, lease: Lease, write: Callable[[], Any], move: Callable[[Row], Any]) -> None:
        expected = self.expected[lease.pk[0]]
        if expected.is_leased(lease.token):
            write()
            move(expected)
        else:
            with pytest.raises(LeaseLost):
                write()

    # Operators

    @rule(pk=rows, verb=st.sampled_from(sorted(OPERATIONS)), when=WHEN)
    def operate(self, pk: int, verb: str, when: str) -> None:
        name, arguments, move = OPERATIONS[verb]
        done = self.operated(pk, name, arguments(when), commit=True)
        assert done == move(self.expected[pk], when)
        if done and verb == "cancel for a reason":
            self.expected[pk].errors += 1

    @rule(pk=rows)
    def pause_and_think_better_of_it(self, pk: int) -> None:
        self.operated(pk, "pause", (), commit=False)

    @rule()
    def reap(self) -> None:
        used_up = [row for row in self.expected.values() if row.used_up]
        assert self.reaped() == len(used_up)
        for row in used_up:
            row.expire()

    # What is compared

    @invariant()
    def everything_is_as_expected(self) -> None:
        found = {}
        for row in self.all():
            has_ended = row.status in ("succeeded", "failed", "cancelled")
            assert (row.finished_at is not None) == has_ended
            assert (row.leased_by is not None) == (row.status == "running")
            when = row.retry_at and (PAST if row.retry_at <= datetime.now(UTC) else FUTURE)
            found[row.id] = (row.status, when, row.lease_token, row.attempts, len(row.errors))
        assert found == {
            pk: (row.status, row.retry_at, row.token, row.attempts, min(row.errors, 10))
            for pk, row in self.expected.items()
        }

    def _in_order(self) -> list[int]:
        """The claimable rows as they are to be claimed; their due times are the database's."""
        rows = sorted(self.all(), key=lambda row: (-row.priority, row.retry_at or datetime.now(UTC), row.id))
        return [row.id for row in rows if self.expected[row.id].claimable]


def compare(machine: type[Machine]) -> None:
    """Look for a difference."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=100,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,  # a search for what is new belongs to no run that others wait for
            suppress_health_check=[*HealthCheck],
        ),
    )
