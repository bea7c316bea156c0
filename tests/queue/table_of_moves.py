"""The table of moves once more, in plain Python and by hand: what the queue is compared with.

Times are not counted here: a due time is past, future or missing, and tests move rows from one to the other.
"""

from __future__ import annotations

from dataclasses import dataclass

PAST, FUTURE = "past", "future"
ENDED = ("succeeded", "failed", "cancelled")


@dataclass
class Row:
    """What a row should be."""

    max_attempts: int
    strict: bool
    priority: int
    status: str = "pending"
    retry_at: str | None = PAST
    token: int = 0
    attempts: int = 0
    errors: int = 0

    @property
    def claimable(self) -> bool:
        if self.retry_at != PAST:
            return False
        return self.status == "pending" or (self.status == "running" and self.attempts < self.max_attempts)

    @property
    def used_up(self) -> bool:
        return self.status == "running" and self.retry_at == PAST and self.attempts >= self.max_attempts

    def claim(self) -> None:
        self.status, self.retry_at = "running", FUTURE
        self.token += 1
        self.attempts += 1

    def expire(self) -> None:
        self.status, self.retry_at = "failed", None
        self.token += 1
        self.errors += 1

    def is_leased(self, token: int) -> bool:
        if self.status != "running" or self.token != token:
            return False
        return self.retry_at == FUTURE or not self.strict

    def heartbeat(self) -> None:
        self.retry_at = FUTURE

    def complete(self) -> None:
        self.status, self.retry_at = "succeeded", None

    def fail(self) -> None:
        self.errors += 1
        if self.attempts < self.max_attempts:
            self.status, self.retry_at = "pending", FUTURE
        else:
            self.status, self.retry_at = "failed", None

    def give_back(self, retry_at: str) -> None:
        self.status, self.retry_at = "pending", retry_at
        self.attempts -= 1

    def abandon(self) -> None:
        self.status, self.retry_at = "cancelled", None
        self.errors += 1

    def enqueue(self, retry_at: str) -> bool:
        if self.status not in ENDED and not (self.status == "pending" and self.retry_at is None):
            return False
        self.status, self.retry_at, self.attempts = "pending", retry_at, 0
        self.token += 1
        return True

    def pause(self) -> bool:
        if self.status not in ("pending", "running"):
            return False
        if self.status == "running":
            self.attempts -= 1
        self.status, self.retry_at = "paused", None
        self.token += 1
        return True

    def resume(self, retry_at: str) -> bool:
        if self.status != "paused":
            return False
        self.status, self.retry_at = "pending", retry_at
        return True

    def cancel(self) -> bool:
        if self.status not in ("pending", "paused", "running"):
            return False
        self.status, self.retry_at = "cancelled", None
        self.token += 1
        return True

    def retry(self) -> bool:
        if self.status not in ("failed", "cancelled"):
            return False
        self.status, self.retry_at, self.attempts = "pending", PAST, 0
        self.token += 1
        return True

    def reason(self, *, ignore_due: bool) -> str | None:
        """Why it cannot be started."""
        if self.status == "pending":
            return None if self.retry_at == PAST or ignore_due else "not due"
        if self.status == "running":
            return None if self.claimable else "running"
        return self.status
