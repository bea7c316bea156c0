"""What searches share that name rows to a store and are granted the first that is free."""

# The methods of a protocol are their docstrings.
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Collection, Sequence
from secrets import token_hex
from typing import Any, Protocol

from reservable.backends.base import Backend
from reservable.finding.search import TOKEN, Found, Key, Purpose, give_back_unheard


class Source(Protocol):
    """The primary keys of a statement's rows, in its order."""

    @property
    def width(self) -> int:
        """Columns of the primary key."""

    @property
    def bounded(self) -> bool:
        """Whether the rows are read at once, whatever is asked for: for the sake of a LIMIT."""

    def rows(self, offset: int, size: int) -> list[Any]:
        """So many keys from there on: the values themselves where the key is one column, else tuples."""

    def names(self, rows: Sequence[Any], key: str) -> list[str]:
        """What the reservations of these rows are called; the key is encoded already."""


class Asking:
    """Rows of a source, and a store that is asked about them."""

    def __init__(self, backend: Backend, source: Source, purpose: Purpose) -> None:
        self._backend = backend
        self._source = source
        self._purpose = purpose
        self._skipped: set[str] = set()
        self._asked: tuple[list[str], str] | None = None

    def skip(self, key: Key) -> None:
        """As `Search.skip`."""
        self._skipped.update(self._source.names([key[0] if len(key) == 1 else key], self._purpose.key))

    def undo(self) -> None:
        """As `Search.undo`."""
        if self._asked is not None:
            give_back_unheard(self._backend, *self._asked, self._purpose.owner)

    def _named(self, rows: list[Any], without: Collection[str]) -> dict[str, Any]:
        """The rows by their names, less some; what a join repeats is there once."""
        every = self._source.names(rows, self._purpose.key)
        return {name: row for name, row in zip(every, rows, strict=True) if name not in without}

    def _first_of(self, keys: dict[str, Any], names: list[str]) -> Found | None:
        """The first of these names that is free, with its row, which is in `keys`."""
        deadline, token = self._purpose.deadline(), token_hex(TOKEN // 2)
        self._asked = names, token
        grant = self._backend.acquire_first(names, token, self._purpose.owner, self._purpose.lifetime)
        self._asked = None
        if grant is None:
            return None
        key = keys[grant.name]
        return Found(key if self._source.width > 1 else (key,), grant, deadline)
