"""What is known of one class whose rows are a queue: its columns and its options."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Table

from reservable.errors import InvalidKey, NotSupported
from reservable.leasing.columns import RESERVED
from reservable.leasing.parameters import Kept, is_sql
from reservable.queue.options import options_of

Key = tuple[Any, ...]
"""A primary key."""


class Queue(ABC):
    """One class; made once."""

    model: str
    """What its rows are called by in the names of reservations and in messages."""

    def __init__(
        self, entity: Any, rows: Any, table: Table, columns: Mapping[str, Any], pk: Sequence[Any]
    ) -> None:
        self.entity = entity
        self.rows = rows
        """What its rows are selected from."""
        self.options = options_of(entity)
        self.statuses = self.options.values
        self.table = table
        """The one with the queue's columns."""
        self.columns = {name: columns[name] for name in RESERVED if name in columns}
        self.pk: tuple[Any, ...] = tuple(pk)
        self.kept: Kept = {}

    @abstractmethod
    def text(self, pk: Key) -> str:
        """A primary key in names; equal rows have equal text. Raises `InvalidKey` for what is none."""

    @abstractmethod
    def key_of(self, row: Any) -> Key:
        """The primary key of an object, in the order of `pk`."""

    @abstractmethod
    def column(self, name: str) -> Column[Any] | None:
        """The column of an attribute; None for what is none."""

    def stored(self, column: Column[Any], value: Any) -> Any:  # noqa: ARG002
        """A value as its column is given it."""
        return value

    def read_key(self, stored: Key) -> Key:
        """A primary key of a row that was found, as objects have it."""
        return stored

    @abstractmethod
    def stored_key(self, pk: Key) -> Key:
        """A primary key as its columns are given it."""

    def name(self, pk: Key) -> str:
        """What a row is called in messages, by its primary key as objects have it, or people say it."""
        return f"{self.model}:{self.text(pk)}"

    def said_key(self, pk: Any) -> Key:
        """A primary key as the caller says it, a tuple where it has parts. Raises `InvalidKey` for what is none."""
        values = tuple(pk) if isinstance(pk, tuple | list) else (pk,)
        if len(values) != len(self.pk) or any(value is None or is_sql(value) for value in values):
            raise InvalidKey(
                f"{pk!r} is no primary key of {self.entity.__name__}, which has {len(self.pk)} parts"
            )
        self.text(values)
        return values

    def own_values(self, values: Mapping[str, Any]) -> dict[Column[Any], Any]:
        """The columns for attributes that a worker sets.

        Raises `NotSupported` for the queue's own, for the primary key, and for what is no column of its table.
        """
        found = {}
        for name, value in values.items():
            column = self.column(name)
            if column is None or column.table is not self.table:
                raise NotSupported(f"{self.entity.__name__}.{name} is no column that a lease can set")
            if name in RESERVED or column in self.pk:
                raise NotSupported(
                    f"{self.entity.__name__}.{name} is not for a worker to set: use the queue's verbs"
                )
            found[column] = self.stored(column, value)
        return found
