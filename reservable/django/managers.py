"""The manager of a model that has none of its own, by its mixins."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from django.db import models

from reservable.django.queryset import ReservableManager, ReservableQuerySet
from reservable.django.queue.querysets import QueuedManager, QueuedQuerySet


class BothQuerySet(ReservableQuerySet, QueuedQuerySet):
    """Of models with both mixins."""


_BothManager: Any = models.Manager.from_queryset(BothQuerySet)


class BothManager(_BothManager):
    """Of models with both mixins."""


def manager_for(mixins: AbstractSet[str]) -> Any:
    """A new manager."""
    if mixins >= {"Reservable", "Queued"}:
        return BothManager()
    return QueuedManager() if "Queued" in mixins else ReservableManager()
