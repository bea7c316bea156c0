"""The published contract, on Django's connections."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
from sqlalchemy.schema import CreateTable

from reservable.backends.base import Backend
from reservable.backends.database import reservations_table
from reservable.testing import BackendContract, blocking
from tests.django.conftest import ALIASES
from tests.django.opening import open_async_django, open_django
from tests.django.project import Databases
from tests.server_process import free_port

pytestmark = [
    pytest.mark.usefixtures("closed"),
    # Of threads that end with Django's own connection open, as Django leaves them.
    pytest.mark.filterwarnings("ignore:.*(deleted while still open|unclosed):ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_to_other_tests() -> Iterator[None]:
    """What such threads have left goes here, where it may: else it goes in some other test, which fails by it."""
    yield
    gc.collect()


class DjangoContract(BackendContract):
    """A table of its own for every test."""

    kind: ClassVar[str]
    notify: ClassVar[bool] = False
    tables: ClassVar[Iterator[int]] = count()

    @pytest.fixture
    def alias(self, project: Databases, request: pytest.FixtureRequest) -> str:
        if ALIASES[self.kind] not in project:
            request.getfixturevalue(f"{self.kind}_url")  # skips, and says which server is missing
        return ALIASES[self.kind]

    @pytest.fixture
    def table(self, alias: str) -> str:
        from django.db import connections

        from reservable.django.dialects import engine_of

        name = f"reservations_{next(self.tables)}"
        made = CreateTable(reservations_table(name=name)).compile(
            dialect=engine_of(connections[alias]).dialect
        )
        with connections[alias].cursor() as cursor:
            cursor.execute(str(made))
        return name

    @pytest.fixture
    def with_prefix(self, alias: str, table: str) -> Callable[[str], Backend]:
        from reservable.django import DjangoBackend

        return lambda prefix: DjangoBackend(alias, prefix, table=table, notify=self.notify)

    @pytest.fixture
    def backend(self, with_prefix: Callable[[str], Backend]) -> Backend:
        return with_prefix("")

    @pytest.fixture
    def second(self, with_prefix: Callable[[str], Backend]) -> Backend:
        return with_prefix("")

    @pytest.fixture
    def reopen(self, project: Databases, alias: str, table: str) -> Callable[[], Backend]:
        return partial(open_django, plain(project), alias, table)

    @pytest.fixture
    def unreachable(self, alias: str, tmp_path: Path) -> Iterator[Backend]:
        from django.db import connections

        from reservable.django import DjangoBackend

        there: dict[str, Any] = dict(connections.databases[alias])
        if self.kind == "sqlite":
            there["NAME"] = str(tmp_path / "no such folder" / "file.sqlite")
        else:
            there["PORT"] = str(free_port())
        connections.databases["nowhere"] = there
        yield DjangoBackend("nowhere")
        del connections.databases["nowhere"]
        del connections["nowhere"]


def plain(project: Databases) -> Databases:
    """The settings as another process can be told them."""
    keys = ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")
    return {alias: {key: entry[key] for key in keys} for alias, entry in project.items()}


class TestSQLite(DjangoContract):
    kind = "sqlite"


class TestPostgreSQL(DjangoContract):
    kind = "postgresql"


class TestPostgreSQLThatTells(DjangoContract):
    kind = "postgresql"
    notify = True


class TestMariaDB(DjangoContract):
    kind = "mariadb"


class TestAsyncPostgreSQL(DjangoContract):
    """The statements in Django's thread for blocking code."""

    kind = "postgresql"

    @pytest.fixture
    def with_prefix(self, alias: str, table: str) -> Iterator[Callable[[str], Backend]]:
        from reservable.django import DjangoBackend

        with ExitStack() as stack:
            yield lambda prefix: stack.enter_context(
                closing(blocking(DjangoBackend(alias, prefix, table=table).twin()))
            )

    @pytest.fixture
    def reopen(self, project: Databases, alias: str, table: str) -> Callable[[], Backend]:
        return partial(open_async_django, plain(project), alias, table)
