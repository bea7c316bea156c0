"""What a worker asks for, checked before anything is asked of a database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement

from reservable.config import label, owner_label
from reservable.errors import ConfigurationError
from reservable.finding.taking import check_limit
from reservable.leasing.claiming import Claimed, claim_next, claim_one
from reservable.leasing.desk import Desk
from reservable.leasing.picking import Wanted
from reservable.leasing.queues import Queue

MOST = 1000
"""Rows that are claimed at once: databases count the parameters of a statement."""


class Claim:
    """The next rows: at most `limit`, that match these conditions beside, at this step."""

    def __init__(
        self, queue: Queue, limit: int, where: Sequence[Any], worker: str | None, step: str | None
    ) -> None:
        check_limit(limit)
        if limit > MOST:
            raise ConfigurationError(f"limit is {limit}: at most {MOST} rows at once")
        self.queue = queue
        self.limit = limit
        wanted = (*where, *_at_step(queue, step))
        self.wanted = Wanted(wanted, {} if wanted else queue.kept)
        self.worker = _worker(worker)

    def on(self, desk: Desk) -> list[Claimed]:
        """The rows."""
        return self.next_at(desk, self.limit)

    def next_at(self, desk: Desk, limit: int) -> list[Claimed]:
        """The next rows, at most so many."""
        return claim_next(desk, limit, self.wanted, self.worker)


class Start:
    """One row by its primary key."""

    def __init__(self, queue: Queue, pk: Any, *, ignore_due: bool) -> None:
        self.queue = queue
        said = queue.said_key(pk)
        self.pk = queue.stored_key(said)
        self.name = queue.name(said)
        self.worker = owner_label()
        self.ignore_due = ignore_due

    def on(self, desk: Desk) -> list[Claimed]:
        """The row. Raises `NotClaimable`."""
        return [claim_one(desk, self.pk, self.name, self.worker, ignore_due=self.ignore_due)]


def _worker(worker: Any) -> str:
    if worker is None:
        return owner_label()
    if not isinstance(worker, str) or not worker:
        raise ConfigurationError(f"worker is {worker!r}: give text that is not empty")
    return label(worker)


def _at_step(queue: Queue, step: str | None) -> Sequence[ColumnElement[bool]]:
    if step is None:
        return ()
    if step not in queue.options.steps:
        raise ConfigurationError(
            f"{step!r} is no step of {queue.entity.__name__}: {', '.join(queue.options.steps) or 'it has none'}"
        )
    return (queue.columns["step"] == step,)
