"""The frozen values that travel between the floors: what a store granted, and who holds a name."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MICROSECOND = timedelta(microseconds=1)
"""The unit of every time in a store: whole microseconds since the epoch, by the store's own clock."""


def utc(microseconds: int) -> datetime:
    """The store's time as an aware datetime in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a store says when it grants: the name is ours from `since` until `until` (microseconds, store's clock).

    `fence` only grows for a name, whoever is granted it and however often it was released.
    """

    name: str
    token: str = field(repr=False)
    fence: int
    since: int
    until: int


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a name: for people and for fencing, never a proof of ownership (that is the token)."""

    name: str
    owner: str
    since: datetime
    until: datetime
    fence: int
    remaining: float
    """Seconds until the reservation runs out, by the store's clock at the time it was asked."""

    @classmethod
    def at(cls, now: int, *, name: str, owner: str, fence: int, since: int, until: int) -> Holder:
        """The holder as the store saw it at `now`; all times in microseconds by the store's clock.

        A clock that is read again in the same statement may have gone past the end.
        """
        return cls(name, owner, utc(since), utc(until), fence, max(0, until - now) / 1_000_000)


class Released(Enum):
    """What became of a request to release; only `YES` and, on the holder's own word, `UNKNOWN` ended something."""

    YES = "released"
    NOT_HELD = "not held"
    BY_ANOTHER = "held by another"
    UNKNOWN = "asked again and found nothing of ours"
    """A reply was lost and the store was asked a second time: the first request may have been the one that
    released. Whoever holds the token can tell: inside its own lifetime it was."""
