"""Whether the open transaction of this thread keeps others out of its SQLite file, which no driver tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from django.db.backends.signals import connection_created

_WRITING = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "ALTER", "DROP", "REINDEX")
_BOUNDS = ("SAVEPOINT", "RELEASE", "ROLLBACK")
"""What begins and ends inner blocks, and asks for no lock."""


class Witness:
    """Sees what Django's cursors execute on one connection, by the instrumentation that Django has for it."""

    def __init__(self, connection: Any) -> None:
        self._connection = ref(connection)
        self._block: ref[Any] | None = None
        self.has_written = False

    def __call__(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        said = str(sql).lstrip()[:10].upper()
        if not said.startswith(_BOUNDS):
            self.note(said.startswith(_WRITING))
        return execute(sql, params, many, context)

    def note(self, writes: bool) -> None:
        """A statement is about to be executed."""
        connection = self._connection()
        if connection is not None and connection.in_atomic_block:
            if not self.is_of(connection):
                self._block, self.has_written = ref(connection.atomic_blocks[0]), False
            self.has_written = self.has_written or writes

    def is_of(self, connection: Any) -> bool:
        """Whether what was seen was seen in the transaction that is open now."""
        blocks = connection.atomic_blocks
        return self._block is not None and bool(blocks) and self._block() is blocks[0]


def witness_of(connection: Any) -> Witness:
    """The one of this connection; it begins to see when it is first asked for."""
    for known in connection.execute_wrappers:
        if isinstance(known, Witness):
            return known
    made = Witness(connection)
    connection.execute_wrappers.insert(0, made)  # whoever adds one for a while takes the last one out again
    return made


def keeps_out(connection: Any, journal: str) -> bool:
    """Whether its transaction holds what a writer beside it needs, as far as is known.

    A transaction that writes has the write lock to its end, and with a rollback journal one that has read keeps
    others from committing (SQLite's "File Locking And Concurrency").
    """
    if not connection.in_atomic_block:
        return False
    mode = str(connection.settings_dict["OPTIONS"].get("transaction_mode") or "").upper()
    if mode in ("IMMEDIATE", "EXCLUSIVE"):
        return True
    witness = witness_of(connection)
    return witness.is_of(connection) and (witness.has_written or journal != "wal")


def _watch(connection: Any, **_: Any) -> None:
    if connection.vendor == "sqlite":
        witness_of(connection)


connection_created.connect(_watch)
