"""Django's queue does what the table of moves says, whatever comes after what."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import pytest

from reservable import Lease
from tests.queue.machine import DELAYS, Machine, compare


class Undo(Exception):
    """Rolls back."""


class ModelMachine(Machine):
    """Rows of Django's model."""

    def empty(self) -> None:
        self.model.objects.all().delete()

    def added(self, priority: int, when: str | None) -> int:
        if when is None:
            return self.model.objects.create(priority=priority, retry_at=None).pk  # type: ignore[no-any-return]
        row = self.model(priority=priority)
        assert row.enqueue(DELAYS[when] or None)
        return row.pk  # type: ignore[no-any-return]

    def set_time(self, pk: int, moment: datetime) -> None:
        self.model.objects.filter(pk=pk).update(retry_at=moment)

    def claimed(self, limit: int) -> list[Lease]:
        return self.model.objects.claim(limit)  # type: ignore[no-any-return]

    def started(self, pk: int, *, ignore_due: bool) -> AbstractContextManager[Lease]:
        return self.model.objects.start(pk, ignore_due=ignore_due)  # type: ignore[no-any-return]

    def operated(self, pk: int, verb: str, arguments: tuple[Any, ...], *, commit: bool) -> bool:
        from django.db import transaction

        done = False
        try:
            with transaction.atomic(using=self.model.objects.db):
                done = getattr(self.model.objects.get(pk=pk), verb)(*arguments)
                if not commit:
                    raise Undo
        except Undo:
            pass
        return done

    def reaped(self) -> int:
        return self.model.objects.reap()  # type: ignore[no-any-return]

    def all(self) -> list[Any]:
        return [*self.model.objects.all()]


@pytest.mark.parametrize("name", ["Job", "Strict"])
@pytest.mark.parametrize("alias", ["sqlite", "postgresql"], indirect=True)
def test_the_queue_does_what_the_table_of_moves_says(alias: str, name: str) -> None:
    from tests.django.shop import models

    compare(type("Compared", (ModelMachine,), {"model": getattr(models, name)}))
