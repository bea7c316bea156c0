"""System checks: what is wrong with the settings stops a project at its start."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db import Error as DatabaseError
from django.db import connections, router

from reservable.config import settings
from reservable.django import settings as project
from reservable.django.backend import DjangoBackend
from reservable.django.homes import default_store, is_in_memory, store_of
from reservable.django.identity import identity_of
from reservable.django.inspection import EVICTION_ADVICE, eviction_of, eviction_told
from reservable.django.mixin import Reservable
from reservable.django.overview import stores
from reservable.errors import ReservableError


def check_settings(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E001: the setting RESERVABLE cannot work. E002: no store can be made of what it says."""
    wrong = [Error(str(problem), id="reservable.E001") for problem in project.problems()]
    if wrong:
        return [*wrong]
    try:
        if settings().store is None:
            default_store()
    except ReservableError as error:
        return [Error(f"{project.NAME}: {error}", id="reservable.E002")]
    return []


def check_models(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E003: what a model says of its reservations cannot work."""
    found: list[CheckMessage] = []
    if project.problems():
        return found
    for model in apps.get_models():
        if issubclass(model, Reservable):
            try:
                identity_of(model)
                if hasattr(model, "__reservable_backend__"):
                    store_of(model)
            except ReservableError as error:
                found.append(Error(str(error), obj=model, id="reservable.E003"))
    return found


def check_table(app_configs: Any, databases: Any = None, **_: Any) -> list[CheckMessage]:
    """W001: reservations live in the database, and their table is missing there."""
    from reservable.django.models import Reservation

    alias = router.db_for_write(Reservation)
    if project.problems() or alias not in (databases or ()) or is_in_memory(connections[alias]):
        return []
    backend = default_store().given
    if not isinstance(backend, DjangoBackend):
        return []
    try:
        with connections[alias].cursor() as cursor:
            tables = connections[alias].introspection.table_names(cursor)
    except DatabaseError:
        return []
    if backend.table.name in tables:
        return []
    return [
        CheckWarning(
            f"The table {backend.table.name!r} of the reservations is missing in the database {alias!r}.",
            hint="Run manage.py migrate.",
            id="reservable.W001",
        )
    ]


def check_eviction(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """W002: the Redis of the reservations may throw them away. It is asked, so `check --deploy` alone does it."""
    found: list[CheckMessage] = []
    try:
        asked = stores()
    except ReservableError:
        return found  # the other checks tell of it
    for store in asked:
        try:
            policy = eviction_of(store)
        except ReservableError:
            continue  # a machine that builds the project need not reach its Redis
        if policy is not None:
            found.append(CheckWarning(eviction_told(policy), hint=EVICTION_ADVICE, id="reservable.W002"))
    return found


def register_all() -> None:
    """Make them known to Django."""
    register(check_settings)
    register(check_models, Tags.models)
    register(check_table, Tags.database)
    register(check_eviction, deploy=True)
