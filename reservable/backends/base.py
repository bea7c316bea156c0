"""The contract of a store of reservations.

A store answers four questions apart: *granted* and *refused* are return values, *over or taken* is a return
value of `extend` and `release`, and a store that failed raises `BackendError`. A name is text of the safe
set `A-Z a-z 0-9 - . _ ~ % , :`; a token is a fresh random secret per grant; a lifetime is a strictly
positive `timedelta`. The store's own clock decides when a reservation is over.

One verb is optional: what is kept alive is extended by `extend_many` (see `ExtendsMany`) where a store offers it,
and one by one with `extend` where it does not.

`reservable.testing` has the suite that a store must pass.
"""

# The methods of a protocol are their docstrings.
# pyright: reportReturnType=false

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from reservable.grants import Grant, Holder, Released
from reservable.plans import Plan, run

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a store can do beyond the verbs; what is declared is tested, what is not gives `NotSupported`."""

    shared: bool = True
    """Other processes, on this machine or another, see the same reservations."""
    durable: bool = False
    """A granted reservation survives a crash of the store."""
    joinable: bool = False
    """Reservations are rows of a table that SQL can join with the user's own tables."""
    tells: bool = False
    """Waiters are told when a name is released: `watch(name)` gives a context manager with `pause(seconds)`, which
    returns early when it is worth asking for the name again."""


@runtime_checkable
class Backend(Protocol):
    """A store of reservations, for blocking code."""

    @property
    def prefix(self) -> str:
        """Text in front of every name in this store; two prefixes never see each other's reservations."""

    @property
    def capabilities(self) -> Capabilities: ...

    def acquire(self, name: str, token: str, owner: str, lifetime: timedelta) -> Grant | None:
        """Take the name if nobody holds it. Idempotent: with the token that holds it, the standing grant."""

    def acquire_first(
        self, names: Sequence[str], token: str, owner: str, lifetime: timedelta
    ) -> Grant | None:
        """Take the first of the names that nobody holds, in their order; idempotent like `acquire`."""

    def release(self, name: str, token: str) -> Released:
        """Give the name back if this token holds it and its time is not over."""

    def extend(self, name: str, token: str, lifetime: timedelta) -> int | None:
        """Set (never add) what is left; the new end in microseconds, None when over or taken."""

    def holder(self, name: str) -> Holder | None:
        """Who holds the name now: a pure read."""

    def break_(self, name: str) -> bool:
        """Take the name from whoever holds it; False when nobody does."""

    def list(self, pattern: str = "*") -> Iterator[Holder]:
        """Everything held now whose name matches the shell pattern, in no particular order."""

    def prune(self) -> int:
        """Remove what is over and only that; how many rows went. 0 where the store forgets by itself."""

    def close(self) -> None:
        """Give up connections this backend opened; reservations stay."""


@runtime_checkable
class ExtendsMany(Protocol):
    """The optional verb of a `Backend`, and awaited of an `AsyncBackend`: many reservations in few round trips."""

    def extend_many(self, held: Sequence[tuple[str, str]], lifetime: timedelta) -> dict[str, int]:
        """Set (never add) what is left of each name that still stands with its token; no name twice.

        The new ends in microseconds, by name; what is over or taken is not among them. When the store fails in
        the middle, some may be extended.
        """


class Verbs(ABC):
    """The verbs of one store as plans, shared by its blocking and its asyncio backend."""

    @abstractmethod
    def acquire(self, name: str, token: str, owner: str, lifetime: timedelta) -> Plan[Grant | None]: ...

    @abstractmethod
    def acquire_first(
        self, names: Sequence[str], token: str, owner: str, lifetime: timedelta
    ) -> Plan[Grant | None]: ...

    @abstractmethod
    def release(self, name: str, token: str) -> Plan[Released]: ...

    @abstractmethod
    def extend(self, name: str, token: str, lifetime: timedelta) -> Plan[int | None]: ...

    @abstractmethod
    def extend_many(self, held: Sequence[tuple[str, str]], lifetime: timedelta) -> Plan[dict[str, int]]: ...

    @abstractmethod
    def holder(self, name: str) -> Plan[Holder | None]: ...

    @abstractmethod
    def break_(self, name: str) -> Plan[bool]: ...

    @abstractmethod
    def page(self, pattern: str, after: Any) -> Plan[tuple[Sequence[Holder], Any]]:
        """Some of what is held, and where the next page starts (None: that was all)."""

    @abstractmethod
    def prune(self) -> Plan[int]: ...


V = TypeVar("V", bound=Verbs)


class PlannedBackend(ABC, Generic[V]):
    """A blocking `Backend` made of a store's plans and one way to perform their steps."""

    def __init__(self, verbs: V, *, prefix: str, capabilities: Capabilities) -> None:
        self._verbs = verbs
        self.prefix = prefix
        self.capabilities = capabilities

    @abstractmethod
    def perform(self, step: Any) -> Any:
        """Do one step of a plan: a statement, a script call, a pause."""

    def acquire(self, name: str, token: str, owner: str, lifetime: timedelta) -> Grant | None:
        return run(self._verbs.acquire(name, token, owner, lifetime), self.perform)

    def acquire_first(
        self, names: Sequence[str], token: str, owner: str, lifetime: timedelta
    ) -> Grant | None:
        return run(self._verbs.acquire_first(names, token, owner, lifetime), self.perform)

    def release(self, name: str, token: str) -> Released:
        return run(self._verbs.release(name, token), self.perform)

    def extend(self, name: str, token: str, lifetime: timedelta) -> int | None:
        return run(self._verbs.extend(name, token, lifetime), self.perform)

    def extend_many(self, held: Sequence[tuple[str, str]], lifetime: timedelta) -> dict[str, int]:
        return run(self._verbs.extend_many(held, lifetime), self.perform)

    def holder(self, name: str) -> Holder | None:
        return run(self._verbs.holder(name), self.perform)

    def break_(self, name: str) -> bool:
        return run(self._verbs.break_(name), self.perform)

    def list(self, pattern: str = "*") -> Iterator[Holder]:
        after: Any = None
        while True:
            holders, after = run(self._verbs.page(pattern, after), self.perform)
            yield from holders
            if after is None:
                return

    def prune(self) -> int:
        return run(self._verbs.prune(), self.perform)

    @abstractmethod
    def close(self) -> None: ...
