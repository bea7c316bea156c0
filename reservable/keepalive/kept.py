"""What can be kept alive."""

# The methods of a protocol are their docstrings.
# pyright: reportReturnType=false

from __future__ import annotations

from datetime import timedelta
from typing import Any, Protocol

from reservable.grants import Grant


class Kept(Protocol):
    """One object that may hold a grant. The keeper calls it from threads of its own, and holds it weakly."""

    @property
    def backend(self) -> Any:
        """A `Backend` or an `AsyncBackend`; the latter is used on an event loop of the keeper's own."""

    @property
    def lifetime(self) -> timedelta:
        """What every renewal sets the time left to."""

    @property
    def renewal(self) -> timedelta:
        """The same, where it must not go so far any more."""

    @property
    def renewing(self) -> bool:
        """Whether it is extended; if not, only its end is watched."""

    def standing(self) -> tuple[Grant, float] | None:
        """The grant and its end on `time.monotonic()`; None when it is over, released, or another process's."""

    def prolong(self, grant: Grant, until: int, deadline: float) -> None:
        """The grant now ends at `until` (microseconds, the store's clock), `deadline` on `time.monotonic()`."""

    def lose(self, grant: Grant) -> None:
        """The grant is over or taken; nothing where it was released meanwhile, or lost before.

        Must not raise, nor take long: others are waiting to be told the same.
        """
