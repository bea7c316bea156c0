"""Reservations are elsewhere, or the statement must be one of its own: keys go to the store in batches."""

from __future__ import annotations

from collections.abc import Iterator
from secrets import token_hex

from reservable.backends.base import Backend
from reservable.sqlalchemy.candidates import Candidates
from reservable.sqlalchemy.reading import Reading
from reservable.sqlalchemy.search import (
    FIRST_BATCH,
    GROWTH,
    LAST_BATCH,
    TOKEN,
    Found,
    Key,
    Purpose,
    give_back,
)


class InBatches:
    """Reservations are elsewhere: keys in the statement's order go to the store in growing batches.

    Each batch starts at the beginning again, so that rows that move up while we look are not passed over; what
    was refused already is left out. Never more keys than ten times those that are reserved ahead.
    """

    def __init__(self, backend: Backend, candidates: Candidates, purpose: Purpose, reading: Reading) -> None:
        self._backend = backend
        self._candidates = candidates
        self._purpose = purpose
        self._reading = reading
        self._skipped: set[Key] = set()
        self.restart()

    def skip(self, key: Key) -> None:
        """Do not come back to this row."""
        self._skipped.add(key)

    def restart(self) -> None:
        """Begin again at the front, with all but what is skipped."""
        self._tried: set[Key] = set(self._skipped)
        self._batches = self._walk()

    def reserve(self, limit: int) -> list[Found]:
        found: list[Found] = []
        try:
            while len(found) < limit:
                one = next(self._batches, None)
                if one is None:
                    break
                found.append(one)
        except BaseException:
            give_back(self._backend, found)
            raise
        return found

    def _walk(self) -> Iterator[Found]:
        size = FIRST_BATCH
        while True:
            keys, complete = self._keys(size)
            yield from self._try([key for key in keys if key not in self._tried] if self._tried else keys)
            if complete:
                return
            size *= GROWTH

    def _keys(self, size: int) -> tuple[list[Key], bool]:
        """The keys of the first rows, in their order, and whether these are all."""
        statement = self._candidates.ordered_keys()
        bounded = self._candidates.bounded
        if not bounded:
            statement = statement.limit(size)
        width = len(self._candidates.attributes)
        rows = self._reading(lambda connection: connection.execute(statement).all())
        # A join may repeat a row.
        return list(dict.fromkeys(tuple(row)[:width] for row in rows)), bounded or len(rows) < size

    def _try(self, keys: list[Key]) -> Iterator[Found]:
        identity, purpose = self._candidates.identity, self._purpose
        front, back = f"{identity.model}:", f":{purpose.key}"
        names = [f"{front}{identity.pk(key)}{back}" for key in keys]
        start, size = 0, FIRST_BATCH
        while start < len(names):
            some = names[start : start + size]
            deadline = purpose.deadline()
            grant = self._backend.acquire_first(some, token_hex(TOKEN // 2), purpose.owner, purpose.lifetime)
            end = start + (len(some) if grant is None else some.index(grant.name) + 1)
            self._tried.update(keys[start:end])
            # Where one was free the next may be as well: only what is refused makes for a bigger batch.
            start, size = end, min(size * GROWTH, LAST_BATCH) if grant is None else FIRST_BATCH
            if grant is not None:
                yield Found(keys[end - 1], grant, deadline)
