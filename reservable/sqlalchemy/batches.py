"""The primary keys of a caller's statement, read in batches for a search that asks the store about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Integer, bindparam, literal_column

from reservable.backends.database import DatabaseBackend
from reservable.sqlalchemy.candidates import Candidates
from reservable.sqlalchemy.reading import Reading, steadily
from reservable.sqlalchemy.shapes import shaped

SIZE, OFFSET = "reservable_size", "reservable_offset"


class KeysInOrder:
    """The statement's keys, through the reading that suits the caller's session."""

    def __init__(self, candidates: Candidates, reading: Reading, beside: DatabaseBackend | None) -> None:
        self._candidates = candidates
        self._reading = reading
        self._beside = beside
        """The reservations in the same database, whose table the statement may ask for before it is made."""
        self.width = len(candidates.attributes)
        self.bounded = candidates.bounded

    def names(self, rows: Sequence[Any], key: str) -> list[str]:
        return self._candidates.identity.names(rows, key)

    def rows(self, offset: int, size: int) -> list[Any]:
        connections = self._reading.connections
        values = {SIZE: size, OFFSET: offset}
        if connections is not None and self._candidates.identity.plain:
            keys = shaped(
                connections, self._candidates, ("keys", offset > 0), lambda: self._statement(offset)
            )
            rows = steadily(lambda: keys.rows(connections, values), connections.dialect, self._beside)
        else:
            statement = self._statement(offset)
            rows = self._reading(
                lambda connection: connection.execute(statement, values).all(), backend=self._beside
            )
        return [row[0] for row in rows] if self.width == 1 else [tuple(row)[: self.width] for row in rows]

    def _statement(self, offset: int) -> Any:
        statement = self._candidates.ordered_keys()
        if self._candidates.bounded:
            return statement
        statement = statement.limit(bindparam(SIZE, type_=Integer()))
        return statement.offset(bindparam(OFFSET, type_=Integer()) if offset else literal_column("0"))
