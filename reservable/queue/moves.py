"""The table of moves: from which status to which, on whose word, and what becomes of the row's other columns.

The only place that says so: the SQL is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from reservable.queue.statuses import ENDED, Status


class If(Enum):
    """What else must be true of a row in that status."""

    ANY = "whatever it is"
    UNSCHEDULED = "it has no due time"
    DUE = "its due time has come"
    OVER = "its lease has run out, and there are attempts left"
    USED_UP = "its lease has run out, and no attempts are left"
    MINE = "the token is the lease's"


class Attempts(Enum):
    """What becomes of the number of attempts."""

    SAME = "stays"
    COUNTED = "one more"
    GIVEN_BACK = "one less, where the row was running"
    NONE = "begins again"


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """One row of the table."""

    name: str
    sources: Mapping[Status, If]
    target: Status
    new_token: bool = False
    """Whether the ownership changes: whoever holds the row now has lost it."""
    attempts: Attempts = Attempts.SAME
    timed: bool = False
    """Whether `retry_at` is set, to the due time or to the end of the lease; if not, it becomes NULL."""

    @property
    def ends(self) -> bool:
        return self.target in ENDED

    @property
    def leases(self) -> bool:
        return self.target is Status.RUNNING


_MINE = {Status.RUNNING: If.MINE}

CLAIM = Move(
    "claim",
    {Status.PENDING: If.DUE, Status.RUNNING: If.OVER},
    Status.RUNNING,
    new_token=True,
    attempts=Attempts.COUNTED,
    timed=True,
)
EXPIRE = Move("expire", {Status.RUNNING: If.USED_UP}, Status.FAILED, new_token=True)

HEARTBEAT = Move("heartbeat", _MINE, Status.RUNNING, timed=True)
COMPLETE = Move("complete", _MINE, Status.SUCCEEDED)
ADVANCE = Move("advance", _MINE, Status.PENDING, attempts=Attempts.NONE, timed=True)
"""`complete` where there is another step to come."""
FAIL = Move("fail", _MINE, Status.FAILED)
FAIL_AND_RETRY = Move("fail and retry", _MINE, Status.PENDING, timed=True)
"""`fail` where attempts are left."""
GIVE_BACK = Move("give back", _MINE, Status.PENDING, attempts=Attempts.GIVEN_BACK, timed=True)
"""`snooze` and `release`."""
ABANDON = Move("abandon", _MINE, Status.CANCELLED)
"""`cancel` by the lease."""

ENQUEUE = Move(
    "enqueue",
    {Status.PENDING: If.UNSCHEDULED} | dict.fromkeys(sorted(ENDED), If.ANY),
    Status.PENDING,
    new_token=True,
    attempts=Attempts.NONE,
    timed=True,
)
CANCEL = Move(
    "cancel",
    dict.fromkeys((Status.PENDING, Status.PAUSED, Status.RUNNING), If.ANY),
    Status.CANCELLED,
    new_token=True,
)
PAUSE = Move(
    "pause",
    dict.fromkeys((Status.PENDING, Status.RUNNING), If.ANY),
    Status.PAUSED,
    new_token=True,
    attempts=Attempts.GIVEN_BACK,
)
RESUME = Move("resume", {Status.PAUSED: If.ANY}, Status.PENDING, timed=True)
RETRY = Move(
    "retry",
    dict.fromkeys((Status.FAILED, Status.CANCELLED), If.ANY),
    Status.PENDING,
    new_token=True,
    attempts=Attempts.NONE,
    timed=True,
)
