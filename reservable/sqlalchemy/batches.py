"""Reservations are elsewhere, or the statement must be one of its own: keys go to the store in batches."""

from __future__ import annotations

from collections.abc import Iterator
from secrets import token_hex
from typing import Any

from sqlalchemy import Integer, bindparam, literal_column

from reservable.backends.base import Backend
from reservable.sqlalchemy.candidates import Candidates
from reservable.sqlalchemy.granting import TOKEN
from reservable.sqlalchemy.reading import Reading, steadily
from reservable.sqlalchemy.search import (
    FIRST_BATCH,
    GROWTH,
    LAST_BATCH,
    Found,
    Key,
    Purpose,
    give_back,
)
from reservable.sqlalchemy.shapes import shaped

SIZE, OFFSET = "reservable_size", "reservable_offset"


class InBatches:
    """Reservations are elsewhere: keys in the statement's order go to the store in growing batches.

    Each batch begins with the last row of the one before. Where that is another row by now, rows have moved, and
    it begins at the front again, less what was refused already; so it does once more before the answer is "none".
    """

    def __init__(self, backend: Backend, candidates: Candidates, purpose: Purpose, reading: Reading) -> None:
        self._backend = backend
        self._candidates = candidates
        self._purpose = purpose
        self._reading = reading
        self._skipped: set[str] = set()
        self.restart()

    def skip(self, key: Key) -> None:
        """Do not come back to this row."""
        identity = self._candidates.identity
        self._skipped.update(identity.names([key[0] if len(key) == 1 else key], self._purpose.key))

    def restart(self) -> None:
        """Begin again at the front, with all but what is skipped."""
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
            rows = self._rows(seen - overlap, size + overlap)
            if overlap and rows[:1] != [last]:
                seen, last, size = 0, None, size * GROWTH
                continue
            yield from self._try(rows)
            complete = self._candidates.bounded or len(rows) < size + overlap
            if complete and not overlap:
                return
            # Read in several pieces, it may have been passed by: once more in one, which is the last look.
            seen, last, size = (
                (0, None, seen + 2 * size) if complete else (seen + size, rows[-1], size * GROWTH)
            )

    def _rows(self, offset: int, size: int) -> list[Any]:
        """Primary keys of rows in their order: the values themselves where the key is one column."""
        width = len(self._candidates.attributes)
        connections = self._reading.connections
        values = {SIZE: size, OFFSET: offset}
        if connections is not None and self._candidates.identity.plain:
            keys = shaped(
                connections, self._candidates, ("keys", offset > 0), lambda: self._statement(offset)
            )
            rows = steadily(lambda: keys.rows(connections, values))
        else:
            statement = self._statement(offset)
            rows = self._reading(lambda connection: connection.execute(statement, values).all())
        return [row[0] for row in rows] if width == 1 else [tuple(row)[:width] for row in rows]

    def _statement(self, offset: int) -> Any:
        statement = self._candidates.ordered_keys()
        if self._candidates.bounded:
            return statement
        statement = statement.limit(bindparam(SIZE, type_=Integer()))
        return statement.offset(bindparam(OFFSET, type_=Integer()) if offset else literal_column("0"))

    def _try(self, rows: list[Any]) -> Iterator[Found]:
        every = self._candidates.identity.names(rows, self._purpose.key)
        # Less what was tried before, and what a join repeats.
        keys = {name: row for name, row in zip(every, rows, strict=True) if name not in self._tried}
        names = list(keys)
        start, size = 0, FIRST_BATCH
        while start < len(names):
            some = names[start : start + size]
            deadline = self._purpose.deadline()
            grant = self._backend.acquire_first(
                some, token_hex(TOKEN // 2), self._purpose.owner, self._purpose.lifetime
            )
            end = start + (len(some) if grant is None else some.index(grant.name) + 1)
            self._tried.update(names[start:end])
            # Where one was free the next may be as well: only what is refused makes for a bigger batch.
            start, size = end, min(size * GROWTH, LAST_BATCH) if grant is None else FIRST_BATCH
            if grant is not None:
                key = keys[grant.name]
                yield Found(key if len(self._candidates.attributes) > 1 else (key,), grant, deadline)
