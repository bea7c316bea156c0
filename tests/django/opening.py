"""Django's backend in any process."""

from __future__ import annotations

from reservable.backends.base import Backend
from tests.django.project import Databases, configure


def open_django(databases: Databases, alias: str, table: str) -> Backend:
    configure(databases)
    from reservable.django import DjangoBackend

    return DjangoBackend(alias, table=table)


def open_async_django(databases: Databases, alias: str, table: str) -> Backend:
    configure(databases)
    from reservable.django import AsyncDjangoBackend, DjangoBackend
    from reservable.testing import blocking

    return blocking(AsyncDjangoBackend(DjangoBackend(alias, table=table)))
