"""Reservations are elsewhere, or the statement must be one of its own: keys go to the store in batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reservable.backends.base import Backend
from reservable.finding.asking import Asking, Source
from reservable.finding.search import FIRST_BATCH, GROWTH, LAST_BATCH, Found, Purpose, give_back


class InBatches(Asking):
    """Reservations are elsewhere: keys in the statement's order go to the store in growing batches.

    Each batch begins with the last row of the one before. Where that is another row by now, rows have moved, and
    it begins at the front again, less what was refused already; so it does once more before the answer is "none".
    """

    def __init__(self, backend: Backend, source: Source, purpose: Purpose) -> None:
        super().__init__(backend, source, purpose)
        self.restart()

    def restart(self) -> None:
        self._tried: set[str] = set(self._skipped)
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
        size, seen, last = FIRST_BATCH, 0, None
        while True:
            overlap = int(last is not None)
            rows = self._source.rows(seen - overlap, size + overlap)
            if overlap and rows[:1] != [last]:
                seen, last, size = 0, None, size * GROWTH
                continue
            yield from self._try(rows)
            complete = self._source.bounded or len(rows) < size + overlap
            if complete and not overlap:
                return
            # Read in several pieces, it may have been passed by: once more in one, which is the last look.
            seen, last, size = (
                (0, None, seen + 2 * size) if complete else (seen + size, rows[-1], size * GROWTH)
            )

    def _try(self, rows: list[Any]) -> Iterator[Found]:
        keys = self._named(rows, self._tried)
        names = list(keys)
        start, size = 0, FIRST_BATCH
        while start < len(names):
            some = names[start : start + size]
            found = self._first_of(keys, some)
            end = start + (len(some) if found is None else some.index(found.grant.name) + 1)
            self._tried.update(names[start:end])
            # Where one was free the next may be as well: only what is refused makes for a bigger batch.
            start, size = end, min(size * GROWTH, LAST_BATCH) if found is None else FIRST_BATCH
            if found is not None:
                yield found
