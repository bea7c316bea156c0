"""System checks: what is wrong with the settings stops a project at its start."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db import Error as DatabaseError
from django.db import connections, router
from django.db.migrations.recorder import MigrationRecorder

from reservable.config import settings
from reservable.django import settings as project
from reservable.django.backend import DjangoBackend
from reservable.django.homes import default_store, is_in_memory, store_of
from reservable.django.identity import identity_of, root_of
from reservable.django.inspection import EVICTION_ADVICE, eviction_of, eviction_told
from reservable.django.named import reservable_models
from reservable.django.overview import stores
from reservable.errors import ReservableError

MIGRATE_ANEW = "Its migration counts as applied: run manage.py migrate --fake reservable zero, then manage.py migrate reservable."


def check_settings(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E001: the setting RESERVABLE cannot work. E002: no store can be made of what it says."""
    wrong = [Error(str(problem), id="reservable.E001") for problem in project.problems()]
    if wrong:
        return [*wrong]
    try:
        told = settings()
    except ReservableError as error:  # of the environment, which it names
        return [Error(str(error), id="reservable.E002")]
    try:
        if told.store is None:
            default_store()
    except ReservableError as error:
        return [Error(f"{project.NAME}: {error}", id="reservable.E002")]
    return []


def check_models(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E003: what a model says of its reservations cannot work. W003: it has the name of another."""
    found: list[CheckMessage] = []
    if project.problems():
        return found
    tables: dict[str, dict[str, Any]] = defaultdict(dict)
    for model in reservable_models():
        try:
            name, root = identity_of(model).model, root_of(model)
            tables[name].setdefault(root._meta.db_table, root)
            if hasattr(model, "__reservable_backend__"):
                store_of(model)
        except ReservableError as error:
            found.append(Error(str(error), obj=model, id="reservable.E003"))
    return found + [_shared(name, [*roots.values()]) for name, roots in tables.items() if len(roots) > 1]


def _shared(name: str, models: Sequence[Any]) -> CheckMessage:
    """Rows of one table may have several models, and share their reservations rightly; these have tables of their own."""
    listed = " and ".join(model._meta.label for model in models)
    return CheckWarning(
        f"{listed} have tables of their own and one name for reservations, {name!r}: while a row of one is reserved, "
        "so is the row with the same primary key of the other.",
        hint="Give each a __reservable_name__ of its own, and none to an abstract base of both.",
        obj=models[-1],
        id="reservable.W003",
    )


def check_table(app_configs: Any, databases: Any = None, **_: Any) -> list[CheckMessage]:
    """W001: reservations live in the database, and their table is missing there."""
    from reservable.django.models import Reservation

    alias = router.db_for_write(Reservation)
    if project.problems() or alias not in (databases or ()) or is_in_memory(connections[alias]):
        return []
    try:
        if settings().store is not None:
            return []
        backend = default_store().given
    except ReservableError:
        return []  # the other checks tell of it
    if not isinstance(backend, DjangoBackend):
        return []
    try:
        with connections[alias].cursor() as cursor:
            tables = connections[alias].introspection.table_names(cursor)
        applied = _has_migrated(connections[alias])
    except DatabaseError:
        return []
    if backend.table.name in tables:
        return []
    if not applied and sys.argv[1:2] == ["migrate"]:
        return []  # which makes it
    return [
        CheckWarning(
            f"The table {backend.table.name!r} of the reservations is missing in the database {alias!r}.",
            hint=MIGRATE_ANEW if applied else "Run manage.py migrate.",
            id="reservable.W001",
        )
    ]


def _has_migrated(connection: Any) -> bool:
    """Whether the migration that makes the table counts as applied."""
    return ("reservable", "0001_initial") in MigrationRecorder(connection).applied_migrations()


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
