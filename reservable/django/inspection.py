"""The stores of the project as an operator asks after them: which they are, whether they answer, what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reservable.backends.opening import Store
from reservable.config import store_for
from reservable.django.homes import store_of
from reservable.django.named import reservable_models
from reservable.django.overview import stores
from reservable.errors import ReservableError

NAMES = "names without a model"


@dataclass(frozen=True)
class Report:
    """What one store said. `failure` says why it did not; the rest is then as far as it came."""

    store: str
    serves: tuple[str, ...]
    """The labels of models, and `NAMES`."""
    server: str | None = None
    """Name and version, where the store has a server."""
    reserved: int | None = None
    eviction: str | None = None
    """The policy by which a Redis may throw reservations away, None where none is."""
    failure: str | None = None


def report_on(store: Store) -> Report:
    """Ask one store for all of it."""
    found: dict[str, Any] = {
        "store": repr(store.given),
        "serves": _served(store),
    }
    try:
        backend: Any = store.blocking
        if hasattr(backend, "server_version"):
            found["server"] = backend.server_version()
        found["reserved"] = sum(1 for _ in backend.list())
        found["eviction"] = eviction_of(store)
    except ReservableError as error:
        found["failure"] = str(error)
    return Report(**found)


def _served(store: Store) -> tuple[str, ...]:
    models = [model._meta.label for model in reservable_models() if store_of(model) is store]
    return (*models, NAMES) if store_for() is store else (*models,)


def reports() -> list[Report]:
    """On each store of the project. Raises `ConfigurationError`."""
    return [report_on(store) for store in stores()]


def eviction_of(store: Store) -> str | None:
    """The policy by which the store's server may throw reservations away when its memory is full; None: it never does.

    Raises `BackendError`.
    """
    backend: Any = store.blocking
    policy: str | None = backend.eviction_policy() if hasattr(backend, "eviction_policy") else None
    return policy


def eviction_told(policy: str) -> str:
    """What such a policy means."""
    return f"Redis may throw reservations away before their time: its maxmemory-policy is {policy}."


EVICTION_ADVICE = (
    "Set maxmemory-policy to noeviction, or give reservations a Redis of their own beside the cache."
)
