"""`Queued`: a model's table becomes a queue by one more base class."""

# Django has no types, and what pyright guesses of its sources is wrong.
# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

from typing import Any, ClassVar

from asgiref.sync import sync_to_async
from django.db import models
from django.db.models.signals import class_prepared

from reservable.backends.database.schema import OWNER_LENGTH
from reservable.django.preparing import prepare
from reservable.django.queue import standing
from reservable.django.queue.clock import DueAtOnce
from reservable.django.queue.fields import (
    ErrorsField,
    OwnedBigIntegerField,
    OwnedInstantField,
    OwnedIntegerField,
    StatusField,
    StepField,
    WorkerField,
)
from reservable.django.queue.guard import look, remember, settle
from reservable.django.queue.operators import ModelOperator, enqueue
from reservable.queue.failures import Entry
from reservable.queue.options import LONGEST_STEP, QueueOptions, options_of


class Queued(models.Model):
    """Rows that are pieces of work: each is claimed by one worker at a time, with a lease.

        class Video(Queued):
            __queue__ = QueueOptions(lease="60s", max_attempts=5)

    A worker's verbs are those of its manager (`QueuedManager`, which a model without one gets). An operator's
    (`enqueue`, `pause`, `resume`, `cancel`, `retry`) run in Django's transaction, say whether the row was in a status
    they are for, and commit with it. A `save()` writes the queue's columns of a row that exists only where the object's
    values were changed, and warns of that (`QueueColumnWarning`).
    """

    __queue__: ClassVar[QueueOptions] = QueueOptions()

    status = StatusField(default="pending", db_default="pending", editable=False)
    retry_at = OwnedInstantField(null=True, db_default=DueAtOnce(), editable=False)
    lease_token = OwnedBigIntegerField(default=0, db_default=0, editable=False)
    leased_by = WorkerField(max_length=OWNER_LENGTH, null=True, editable=False)
    priority = models.IntegerField(default=0, db_default=0)
    attempts = OwnedIntegerField(default=0, db_default=0, editable=False)
    errors = ErrorsField(null=True, editable=False)
    finished_at = OwnedInstantField(null=True, editable=False)
    step = StepField(max_length=LONGEST_STEP, default="", editable=False)

    class Meta:
        abstract = True

    def __init_subclass__(cls, **options: Any) -> None:
        options_of(cls)  # a bad one is told at once
        super().__init_subclass__(**options)

    @property
    def last_error(self) -> Entry | None:
        """The newest failure: `type`, `message`, `traceback`, `attempt`, `at`; None when there is none."""
        found: Any = self.errors
        return found[-1] if found else None

    # An operator's

    def enqueue(self, at: Any = None) -> bool:
        """Queue the row, due now or `at` (an aware datetime, or a delay): a new one, or one that has ended."""
        return enqueue(self, at)

    async def aenqueue(self, at: Any = None) -> bool:
        """`enqueue` for asyncio."""
        return await sync_to_async(self.enqueue)(at)

    def pause(self) -> bool:
        """Take a pending or running row out of the queue; whoever works on it loses it."""
        return ModelOperator(self).pause()

    async def apause(self) -> bool:
        """`pause` for asyncio."""
        return await sync_to_async(self.pause)()

    def resume(self, at: Any = None) -> bool:
        """Put a paused row back, due now or `at`."""
        return ModelOperator(self).resume(at)

    async def aresume(self, at: Any = None) -> bool:
        """`resume` for asyncio."""
        return await sync_to_async(self.resume)(at)

    def cancel(self, reason: str | None = None) -> bool:
        """End a row that has not ended; the reason is stored as its last error."""
        return ModelOperator(self).cancel(reason)

    async def acancel(self, reason: str | None = None) -> bool:
        """`cancel` for asyncio."""
        return await sync_to_async(self.cancel)(reason)

    def retry(self) -> bool:
        """Queue a failed or cancelled row again, with all its attempts."""
        return ModelOperator(self).retry()

    async def aretry(self) -> bool:
        """`retry` for asyncio."""
        return await sync_to_async(self.retry)()

    # For `filter()`

    @classmethod
    def due(cls) -> Any:
        """A condition: rows that can be claimed now."""
        return standing.due(cls)

    @classmethod
    def running(cls) -> Any:
        """A condition: rows whose lease is not over."""
        return standing.running(cls)

    @classmethod
    def expired(cls) -> Any:
        """A condition: rows that are running, and whose lease is over."""
        return standing.expired(cls)

    # As Django calls them

    @classmethod
    def from_db(cls, db: Any, field_names: Any, values: Any, **options: Any) -> Any:
        row = super().from_db(db, field_names, values, **options)
        remember(row)
        return row

    def refresh_from_db(self, using: Any = None, fields: Any = None, **options: Any) -> None:
        super().refresh_from_db(using, fields, **options)
        remember(self, fields)

    def save_base(self, raw: bool = False, **options: Any) -> None:
        if not raw:
            look(self, options.get("update_fields"))
        super().save_base(raw=raw, **options)
        settle(self, options.get("update_fields"))


# As users import it, for their migrations name the bases of a model.
Queued.__module__ = "reservable.django"


class_prepared.connect(prepare)
