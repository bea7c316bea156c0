"""Handles on names without a model."""

from __future__ import annotations

from typing import Any, Unpack

from reservable.config import async_backend_for, backend_for, owner_label
from reservable.handles.awaited import AsyncReservation
from reservable.handles.blocking import Reservation
from reservable.handles.options import Options
from reservable.names import plain_name


def reservation(key: Any, duration: Any = 60, **options: Unpack[Options]) -> Reservation:
    """A handle on a name without a model, such as "nightly-report"; needs a configured backend.

    `options` as for `Reservable.reservation`. Raises `InvalidKey`, `InvalidDuration`, `ConfigurationError`.
    """
    name = plain_name(key)
    return Reservation(backend_for(), name, duration, owner=owner_label(), **options)


def areservation(key: Any, duration: Any = 60, **options: Unpack[Options]) -> AsyncReservation:
    """`reservation` for asyncio; nothing to await until the handle is used."""
    name = plain_name(key)
    return AsyncReservation(async_backend_for(), name, duration, owner=owner_label(), **options)
