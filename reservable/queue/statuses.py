"""What a queued row can be, and the values that stand for it in the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from reservable.errors import ConfigurationError, NotSupported

LONGEST = 32
"""Characters of a status that is text."""

Value = str | int


class Status(StrEnum):
    """The roles that the queue knows; stored under these names unless `QueueOptions(statuses=...)` says otherwise."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PAUSED = "paused"
    CANCELLED = "cancelled"


ENDED = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED})
OPTIONAL = frozenset({Status.PAUSED, Status.CANCELLED})


class Statuses:
    """The stored value of each role, and the values beside them that are the user's own.

    `renamed` maps roles to stored values, None for one that is left out; `extra` are the user's own. All are text
    or all are integers. Raises `ConfigurationError`.
    """

    def __init__(
        self, renamed: Mapping[str, Value | None] | None = None, extra: Iterable[Value] = ()
    ) -> None:
        chosen = {_role(role): value for role, value in (renamed or {}).items()}
        left_out = {role for role, value in chosen.items() if value is None}
        if not left_out <= OPTIONAL:
            raise ConfigurationError(f"a queue cannot do without {', '.join(sorted(left_out - OPTIONAL))}")
        self.stored: dict[Status, Value] = {
            role: _plain(chosen.get(role, role.value)) for role in Status if role not in left_out
        }
        self.values: tuple[Value, ...] = (*self.stored.values(), *map(_plain, extra))
        self.numeric = _all_numeric(self.values)
        self.ended: tuple[Value, ...] = tuple(
            self.stored[role] for role in sorted(ENDED) if role in self.stored
        )
        """What stands for rows that are done with."""
        # Case is no difference to many collations.
        if len({str(value).casefold() for value in self.values}) < len(self.values):
            raise ConfigurationError(f"two statuses have the same value: {self.values!r}")
        self._roles = {value: role for role, value in self.stored.items()}

    def __contains__(self, role: Status) -> bool:
        return role in self.stored

    def value(self, role: Status) -> Value:
        """What stands for the role in the database; `NotSupported` when this queue leaves it out."""
        if role not in self.stored:
            raise NotSupported(
                f"this queue has no status {role.value!r}: QueueOptions(statuses=...) leaves it out"
            )
        return self.stored[role]

    def role(self, value: Any) -> Status | None:
        """The role that a stored value stands for; None for one of the user's own."""
        return self._roles.get(value)


def _role(name: str) -> Status:
    try:
        return Status(name)
    except ValueError as error:
        raise ConfigurationError(f"{name!r} is no status: {', '.join(Status)}") from error


def _plain(value: Any) -> Value:
    """The value without its enum."""
    if isinstance(value, str):
        text = str.__str__(value)
        if not 1 <= len(text) <= LONGEST or not text.isprintable() or text != text.strip():
            raise ConfigurationError(f"the status {value!r} is not 1 to {LONGEST} printable characters")
        return text
    if isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31:
        return int(value)
    raise ConfigurationError(f"the status {value!r} is neither text nor an integer of 32 bits")


def _all_numeric(values: tuple[Value, ...]) -> bool:
    kinds = {type(value) for value in values}
    if len(kinds) > 1:
        raise ConfigurationError(f"statuses are all text or all integers, and here they are both: {values!r}")
    return kinds == {int}
