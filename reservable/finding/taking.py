"""One call of a finding function: search, look again, hand over to the caller."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from reservable.backends.base import Backend
from reservable.errors import BackendError, ConfigurationError
from reservable.finding.search import Found, Key, Purpose, Search, give_back, over_already
from reservable.handles import Handle, release

log = logging.getLogger("reservable")

T = TypeVar("T")


class Taken(NamedTuple):
    """A row that is reserved and in the caller's hands."""

    key: Key
    instance: Any
    handle: Handle


class Taking(ABC):
    """One call: the purpose, the search that suits the store, and how rows are read again and handed over."""

    purpose: Purpose
    backend: Backend
    search: Search

    @abstractmethod
    def read_again(self, found: Sequence[Found]) -> Iterable[tuple[Key, Any]]:
        """The rows that match still, of those that are reserved now: instances with their keys.

        Where the caller asks for rows that are unreserved for this very purpose, these grants do not count.
        """

    @abstractmethod
    def handle(self, instance: Any, name: str) -> Handle:
        """A handle that the instance keeps account of."""

    def see_through(
        self,
        work: Callable[[], T],
        undo: Callable[[T | None], object],  # noqa: ARG002 - for heirs
    ) -> T:
        """What the work returns. Where it can be cancelled half-way, it is not, and is undone instead.

        `undo` is given the outcome, None where nobody knows it; it may be called twice.
        """
        return work()

    def take(self, limit: int) -> list[Taken]:
        """Up to `limit` rows, reserved and in the caller's hands; none is left reserved by an error."""
        taken: list[Taken] = []
        try:
            while len(taken) < limit:
                found = self._reserve(limit - len(taken))
                if not found:
                    break
                taken += self._bring(found)
        except BaseException:
            self._let_go(taken)
            raise
        return taken

    def each(self) -> Iterator[Any]:
        """Row after row; when the end is reached, one more look from the front for what has become free."""
        yielded: set[Key] = set()
        anything = True
        while anything:
            anything = False
            while taken := self.take(1):
                [(key, instance, handle)] = taken
                if key in yielded:
                    # Released, or over, and still a match. Only such rows need be kept out by the search:
                    # most are released when they match no longer, and a list of all would grow and grow.
                    self.search.skip(key)
                    self._see_to_it(partial(release, handle, self.backend))
                    continue
                anything = True
                yielded.add(key)
                yield instance
            self.search.restart()

    def _reserve(self, limit: int) -> list[Found]:
        return self.see_through(
            lambda: self.search.reserve(limit),
            lambda found: give_back(self.backend, found) if found is not None else self.search.undo(),
        )

    def _bring(self, found: list[Found]) -> list[Taken]:
        """The rows that still match, now that nobody else works on them; the others are given back."""
        brought: list[Taken] = []
        missing: dict[Key, Found] = {one.key: one for one in found}
        try:
            for key, instance in self.read_again(found):
                if key in missing:
                    brought.append(self._hand_over(instance, missing.pop(key)))
            for key, one in [*missing.items()]:
                self.search.skip(key)
                self.backend.release(one.grant.name, one.grant.token)
                del missing[key]
        except BaseException:
            try:
                self._let_go(brought)
            finally:  # cancelled again in there, it is seen through behind us
                self._give_back(missing.values())
            raise
        return brought

    def _hand_over(self, instance: Any, one: Found) -> Taken:
        """Make the instance the holder of the grant."""
        if time.monotonic() >= one.deadline:
            self._give_back([one])
            raise over_already(one.grant.name, self.purpose)
        handle = self.handle(instance, one.grant.name)
        handle.adopt(one.grant, one.deadline)
        return Taken(one.key, instance, handle)

    def _let_go(self, taken: Iterable[Taken]) -> None:
        """Release what the caller will not be told of, because of an error that is under way."""

        def work() -> None:
            for one in taken:
                try:
                    release(one.handle, self.backend)
                except BackendError as trouble:
                    log.warning("the release of %s failed: %s", one.handle.name, trouble)

        self._see_to_it(work)

    def _give_back(self, found: Iterable[Found]) -> None:
        """As `_let_go`, of what nobody has a handle on yet."""
        self._see_to_it(partial(give_back, self.backend, [*found]))

    def _see_to_it(self, work: Callable[[], object]) -> None:
        """Do what is done again where nobody knows whether it was."""

        def done() -> bool:
            work()
            return True

        self.see_through(done, lambda outcome: outcome or work())


def check_limit(limit: Any) -> None:
    """Raises `ConfigurationError` for what is no number of rows to take."""
    if type(limit) is not int or limit < 1:
        raise ConfigurationError(f"limit is {limit!r}: how many rows to take at most, a whole number from 1")
