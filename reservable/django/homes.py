"""Where the reservations of a model live: its own backend, the configured one, or the table of this app."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from django.db import connections, router
from django.db.models.signals import post_migrate

from reservable.backends.memory import MemoryBackend
from reservable.backends.opening import Store
from reservable.config import fixed_store, settings
from reservable.django import settings as project
from reservable.django.backend import DjangoBackend
from reservable.django.installed import must_be_installed

Options = dict[str, Any]

_tables: dict[str, tuple[Options, Store]] = {}
_memories: dict[str, tuple[Options, Store]] = {}
_of_tests: WeakKeyDictionary[Any, tuple[Options, Store]] = WeakKeyDictionary()


class StandIn(MemoryBackend):
    """Memory that stands in for the table, where the database is in this process's memory itself."""


def store_of(model: type[Any]) -> Store:
    """The store for the rows of this model. Raises `ConfigurationError` for settings that cannot work."""
    project.must_be_sound()
    store = fixed_store(model)
    return store if store is not None else default_store()


def default_store() -> Store:
    """The table in the database that the project's routers send its writes to: never a replica.

    Raises `ConfigurationError` for settings that cannot work.
    """
    project.must_be_sound()
    must_be_installed()
    from reservable.django.models import Reservation

    alias = router.db_for_write(Reservation)
    options = settings().options
    if not is_in_memory(connections[alias]):
        known = _tables.get(alias)
        if known is None or known[0] != options:
            known = _tables[alias] = (options, _table(alias, options))
        return known[1]
    # Each test that is wrapped in a transaction begins with none.
    tests = [block for block in connections[alias].atomic_blocks if getattr(block, "_from_testcase", False)]
    place: Any = (_of_tests, tests[-1]) if tests else (_memories, alias)
    known = place[0].get(place[1])
    if known is None or known[0] != options:
        known = place[0][place[1]] = (options, Store(StandIn(options["prefix"])))
    return known[1]


def _table(alias: str, options: Options) -> Store:
    return Store(DjangoBackend(alias, options["prefix"], notify=options["notify"]))


def is_in_memory(connection: Any) -> bool:
    """Whether no other connection can see the database."""
    return connection.vendor == "sqlite" and bool(connection.is_in_memory_db())


def _forget(using: str, **_: Any) -> None:
    """A database that was just migrated or flushed has no reservations."""
    _memories.pop(using, None)


post_migrate.connect(_forget)
