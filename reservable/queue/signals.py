"""What the body of a lease raises to say how its row goes on; none of them is an error."""

from __future__ import annotations

from typing import Any

from reservable import durations


class Outcome(Exception):
    """Raised inside a lease and handled there."""


class Snooze(Outcome):
    """Not now: the row is pending again after `delay`, and the attempt does not count."""

    def __init__(self, delay: Any) -> None:
        super().__init__(f"snoozed for {delay}")
        self.delay = durations.delay(delay)


class Retry(Outcome):
    """It failed: try again after `after`, or by the backoff. It counts: with no attempts left, the row has failed.

    What is stored as the error is the cause, when it is raised `from` one.
    """

    def __init__(self, after: Any = None) -> None:
        super().__init__("to be tried again" if after is None else f"to be tried again after {after}")
        self.after = None if after is None else durations.delay(after)


class Cancel(Outcome):
    """It makes no sense to go on: the row is cancelled, with the reason stored as its last error."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason or "cancelled")
        self.reason = reason
