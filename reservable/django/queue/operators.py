"""An operator's verbs on a model's object, in Django's transaction."""

# Django has no types, and what pyright guesses of its sources is wrong.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import router
from django.db.transaction import atomic

from reservable.django.queue.clock import Moment
from reservable.django.queue.desks import desk_of
from reservable.errors import UnidentifiedInstance
from reservable.leasing import statements
from reservable.leasing.operators import Operator, moment
from reservable.queue.statuses import Status


class ModelOperator(Operator):
    """Raises `UnidentifiedInstance` for an object without a primary key."""

    def __init__(self, row: Any) -> None:
        self._desk = desk_of(type(row), router.db_for_write(type(row), instance=row))
        self._row = row
        self.queue = self._desk.queue
        values = self.queue.identity.values(row)
        if None in values:
            raise UnidentifiedInstance(
                f"this {type(row).__name__} has no complete primary key, or was deleted: save it first"
            )
        self.pk = self.queue.stored_key(self.queue.said_key(values))

    def execute(self, statement: Any) -> Any:
        def on(connection: Any) -> Any:
            result = connection.execute(statement)
            return result.freeze()() if result.returns_rows else result

        return self._desk.in_djangos(on)

    def cancel(self, reason: str | None) -> bool:
        with atomic(using=self._desk.alias):  # in which the earlier errors stay locked
            return super().cancel(reason)

    def show(self, state: dict[str, Any]) -> None:
        self._desk.show(self._row, state)


def enqueue(row: Any, at: Any) -> bool:
    """Queue a row that has ended, or that was never scheduled; a new one is saved."""
    if not row._state.adding:
        return ModelOperator(row).enqueue(at)
    due = moment(at)
    desk = desk_of(type(row), row._state.db)
    if at is not None or isinstance(vars(row).get("retry_at"), datetime | None):  # else the default says now
        row.retry_at = Moment(statements.moment(due))
    row.status = desk.queue.statuses.value(Status.PENDING)
    row.attempts, row.leased_by, row.finished_at = 0, None, None  # of a copy
    row.save()
    row.refresh_from_db(using=row._state.db, fields=["retry_at"])
    return True
