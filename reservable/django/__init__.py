"""Reservations for Django's models: put "reservable.django" into INSTALLED_APPS and migrate.

Every public name is loaded when it is first used, for Django imports this package before its models can be.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reservable.django.asynchronous import AsyncDjangoBackend as AsyncDjangoBackend
    from reservable.django.backend import DjangoBackend as DjangoBackend
    from reservable.django.mixin import Reservable as Reservable
    from reservable.django.queryset import ReservableManager as ReservableManager
    from reservable.django.queryset import ReservableQuerySet as ReservableQuerySet
    from reservable.django.queue.mixin import Queued as Queued
    from reservable.django.queue.querysets import QueuedManager as QueuedManager
    from reservable.django.queue.querysets import QueuedQuerySet as QueuedQuerySet

_HOMES = {
    "AsyncDjangoBackend": "reservable.django.asynchronous",
    "DjangoBackend": "reservable.django.backend",
    "Queued": "reservable.django.queue.mixin",
    "QueuedManager": "reservable.django.queue.querysets",
    "QueuedQuerySet": "reservable.django.queue.querysets",
    "Reservable": "reservable.django.mixin",
    "ReservableManager": "reservable.django.queryset",
    "ReservableQuerySet": "reservable.django.queryset",
}

__all__ = [
    "AsyncDjangoBackend",
    "DjangoBackend",
    "Queued",
    "QueuedManager",
    "QueuedQuerySet",
    "Reservable",
    "ReservableManager",
    "ReservableQuerySet",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value
