"""The columns of a queue, as a mixin for mapped classes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Integer, String, literal_column
from sqlalchemy.orm import Mapped, MappedColumn, declared_attr, mapped_column
from sqlalchemy.types import TypeEngine

from reservable.leasing.columns import RESERVED, Errors, Instant, Worker, due_at_once
from reservable.queue.failures import Entry
from reservable.queue.options import LONGEST_STEP, options_of
from reservable.queue.statuses import LONGEST, Status

OURS = {"reservable": "queue"}
"""What a column says that the queue has declared."""


class QueueColumns:
    """The columns. `priority` is for the user to set; all others change by the verbs of the queue alone."""

    @declared_attr
    def status(cls) -> Mapped[Any]:
        """What is to be done with the row."""
        statuses = options_of(cls).values
        pending = statuses.value(Status.PENDING)
        kind: TypeEngine[Any] = Integer() if statuses.numeric else String(LONGEST)
        return _column(kind, pending, nullable=False)

    @declared_attr
    def retry_at(cls) -> Mapped[datetime | None]:
        """Pending: when it is due, NULL while it is not scheduled. Running: when the lease is over. Else NULL."""
        return mapped_column(Instant(), server_default=due_at_once(), nullable=True, info=OURS)

    @declared_attr
    def lease_token(cls) -> Mapped[int]:
        """Grows by one at every change of ownership."""
        return _column(BigInteger(), 0, nullable=False)

    @declared_attr
    def leased_by(cls) -> Mapped[str | None]:
        """The worker, for people."""
        return mapped_column(Worker(), nullable=True, info=OURS)

    @declared_attr
    def priority(cls) -> Mapped[int]:
        """Higher ones first."""
        return _column(Integer(), 0, nullable=False)

    @declared_attr
    def attempts(cls) -> Mapped[int]:
        """How often it was claimed since it was queued."""
        return _column(Integer(), 0, nullable=False)

    @declared_attr
    def errors(cls) -> Mapped[list[Entry]]:
        """The newest failures, oldest first."""
        return mapped_column(Errors(), nullable=True, info=OURS)

    @declared_attr
    def finished_at(cls) -> Mapped[datetime | None]:
        """When it succeeded, failed or was cancelled."""
        return mapped_column(Instant(), nullable=True, info=OURS)

    @declared_attr
    def step(cls) -> Mapped[str | None]:
        """The step it has come to; a column only where the queue has steps."""
        steps = options_of(cls).steps
        return _column(String(LONGEST_STEP), steps[0], nullable=False) if steps else None  # type: ignore[return-value]


for _name in RESERVED:
    # To a type checker they are columns. To SQLAlchemy a name in annotations is also a field, and a dataclass takes
    # none from a mixin that is no dataclass itself.
    vars(QueueColumns)[_name].fget.__annotations__.clear()


def _column(kind: TypeEngine[Any], default: Any, **options: Any) -> MappedColumn[Any]:
    """A column with the same default for objects and for rows that are inserted by hand."""
    shown: Any = default if isinstance(default, str) else literal_column(str(default))
    return mapped_column(kind, default=default, server_default=shown, info=OURS, **options)
