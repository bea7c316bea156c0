"""What a search for free rows is asked, and what it finds.

Every search answers one question, `reserve(n)`: up to n more rows in the statement's order, each with its grant;
none when no free row is left. Whether the rows still match is for the caller to look at again.
"""

# The methods of a protocol are their docstrings.
# pyright: reportReturnType=false

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, Protocol, TypeVar

from reservable import durations, names
from reservable.backends.base import Backend
from reservable.config import owner_label
from reservable.errors import BackendError, InvalidDuration
from reservable.grants import Grant
from reservable.handles import Handle, Holdings

log = logging.getLogger("reservable")

H = TypeVar("H", bound=Handle)

Key = tuple[Any, ...]

TOKEN = 32
"""Characters of a token."""

FIRST_BATCH, GROWTH, LAST_BATCH = 10, 10, 10_000

BRIEFLY = timedelta(seconds=2)
"""The lifetime of what is asked for only to be given back."""


class Found(NamedTuple):
    """A row that was free and is ours now, until `deadline` on the monotonic clock."""

    key: Key
    grant: Grant
    deadline: float


class Purpose(NamedTuple):
    """What the rows are reserved for."""

    key: str
    owner: str
    duration: Any

    @property
    def lifetime(self) -> timedelta:
        """From now on: `InvalidDuration` when an instant was said that is over."""
        return durations.lifetime(self.duration)

    def deadline(self) -> float:
        """The end of a lifetime whose request is sent now."""
        return time.monotonic() + self.lifetime.total_seconds()

    def handle(self, kind: type[H], backend: Any, name: str, ledger: Holdings) -> H:
        """A handle on what was found, for the object that keeps this account."""
        try:
            return kind(backend, name, self.duration, owner=self.owner, ledger=ledger)
        except InvalidDuration:  # an instant that has come meanwhile: the grant's own end tells
            return kind(backend, name, durations.SHORTEST, owner=self.owner, ledger=ledger)


def purpose(key: Any, duration: Any) -> Purpose:
    """What is wanted by this process; raises `InvalidKey` and `InvalidDuration`."""
    wanted = Purpose(names.plain_name(key), owner_label(), duration)
    _ = wanted.lifetime
    return wanted


class Search(Protocol):
    """How free rows are found and reserved."""

    def reserve(self, limit: int) -> list[Found]:
        """Up to so many more rows, in their order."""

    def skip(self, key: Key) -> None:
        """Do not come back to this row."""

    def restart(self) -> None:
        """Begin again at the front, with all but what is skipped."""

    def undo(self) -> None:
        """Give back what the last request may have been granted, whose answer nobody has."""


def over_already(name: str, purpose: Purpose) -> BackendError:
    """The error for a grant whose time was over before it could be handed on."""
    return BackendError(
        f"{name} was reserved for {purpose.duration} and that was over before its row could be handed over: ask for a "
        "longer time, or look at what makes the store slow"
    )


def give_back(backend: Backend, found: Iterable[Found]) -> None:
    """Release what nobody will be told of, because of an error that is under way."""
    for one in found:
        try:
            backend.release(one.grant.name, one.grant.token)
        except BackendError as trouble:
            log.warning("the release of %s failed: %s", one.grant.name, trouble)


def give_back_unheard(backend: Backend, asked: Sequence[str], token: str, owner: str) -> None:
    """Release what the first of these names may have been granted: asked again with its token, the store tells."""
    grant = backend.acquire_first(asked, token, owner, BRIEFLY)
    if grant is not None:
        backend.release(grant.name, token)
