"""The published contract, on every store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
import redis
from sqlalchemy import URL, Engine, create_engine, literal, select

from reservable.backends.base import Backend
from reservable.backends.database import AsyncDatabaseBackend, DatabaseBackend
from reservable.backends.memory import AsyncMemoryBackend, MemoryBackend
from reservable.backends.opening import open_backend
from reservable.backends.redis.connect import async_from_url
from reservable.testing import BackendContract, blocking
from reservable.testing.store import taken
from tests.contract.opening import (
    async_engine,
    open_async_database,
    open_async_redis,
    open_sqlite,
    sqlite_engine,
)
from tests.server_process import free_port
from tests.stores import STORES, Stores

JOURNALS = {"sqlite in WAL mode": "wal", "sqlite with a rollback journal": "delete"}


class TestMemory(BackendContract):
    @pytest.fixture
    def backend(self) -> Backend:
        return MemoryBackend()

    @pytest.fixture
    def with_prefix(self) -> Callable[[str], Backend]:
        return MemoryBackend


class TestAsyncMemory(BackendContract):
    @pytest.fixture
    def with_prefix(self) -> Iterator[Callable[[str], Backend]]:
        with ExitStack() as stack:

            def make(prefix: str) -> Backend:
                return stack.enter_context(closing(blocking(AsyncMemoryBackend(prefix=prefix))))

            yield make

    @pytest.fixture
    def backend(self, with_prefix: Callable[[str], Backend]) -> Backend:
        return with_prefix("")


class RedisContract(BackendContract):
    decode_responses: ClassVar[bool]

    @pytest.fixture
    def url(self, fresh_database: Callable[[str], str]) -> str:
        return fresh_database("redis")

    @pytest.fixture
    def with_prefix(self, url: str) -> Iterator[Callable[[str], Backend]]:
        with ExitStack() as stack:

            def make(prefix: str) -> Backend:
                client = redis.Redis.from_url(url, decode_responses=self.decode_responses)
                stack.enter_context(closing(client))
                return stack.enter_context(closing(open_backend(client, prefix=prefix)))

            yield make

    @pytest.fixture
    def backend(self, with_prefix: Callable[[str], Backend]) -> Backend:
        return with_prefix("")

    @pytest.fixture
    def second(self, with_prefix: Callable[[str], Backend]) -> Backend:
        return with_prefix("")

    @pytest.fixture
    def reopen(self, url: str) -> Callable[[], Backend]:
        return partial(open_backend, url)

    @pytest.fixture
    def unreachable(self) -> Backend:
        return open_backend(f"redis://127.0.0.1:{free_port()}/0")


class TestRedis(RedisContract):
    decode_responses = False


class TestRedisWithDecodedResponses(RedisContract):
    decode_responses = True


class TestAsyncRedis(TestRedis):
    @pytest.fixture
    def with_prefix(self, url: str) -> Iterator[Callable[[str], Backend]]:
        with ExitStack() as stack:
            yield lambda prefix: stack.enter_context(closing(blocking(async_from_url(url, prefix))))

    @pytest.fixture
    def reopen(self, url: str) -> Callable[[], Backend]:
        return partial(open_async_redis, url)

    @pytest.fixture
    def unreachable(self) -> Iterator[Backend]:
        with closing(open_async_redis(f"redis://127.0.0.1:{free_port()}/0")) as backend:
            yield backend


@pytest.fixture(scope="module")
def databases(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Engine]]:
    """A database of each kind, for all tests here."""
    with ExitStack() as stack:

        @cache
        def database(kind: str) -> Engine:
            if kind not in JOURNALS:
                engine = create_engine(stack.enter_context(stores.fresh(kind)))
            else:
                file = tmp_path_factory.mktemp("contract") / "contract.sqlite"
                with closing(sqlite3.connect(file)) as driver:
                    driver.execute(f"PRAGMA journal_mode = {JOURNALS[kind]}")
                engine = sqlite_engine(f"sqlite:///{file}")
            stack.callback(engine.dispose)
            return engine

        yield database


class DatabaseContract(BackendContract):
    """A table of its own for every test."""

    kind: ClassVar[str]
    notify: ClassVar[bool] = False
    tables: ClassVar[Iterator[int]] = count()

    @pytest.fixture
    def engine(self, databases: Callable[[str], Engine], request: pytest.FixtureRequest) -> Engine:
        if self.kind not in JOURNALS:
            request.getfixturevalue(f"{self.kind}_url")  # skips where the server is missing
        return databases(self.kind)

    @pytest.fixture
    def table(self) -> str:
        return f"reservations_{next(self.tables)}"

    @pytest.fixture
    def with_prefix(self, engine: Engine, table: str) -> Iterator[Callable[[str], Backend]]:
        with ExitStack() as stack:

            def make(prefix: str) -> Backend:
                backend = DatabaseBackend(engine, prefix, table=table, notify=self.notify)
                return stack.enter_context(closing(backend))

            yield make

    @pytest.fixture
    def backend(self, with_prefix: Callable[[str], Backend]) -> Backend:
        return with_prefix("")

    @pytest.fixture
    def second(self, with_prefix: Callable[[str], Backend]) -> Backend:
        return with_prefix("")

    @pytest.fixture
    def reopen(self, engine: Engine, table: str) -> Callable[[], Backend]:
        url = engine.url.render_as_string(hide_password=False)
        return partial(open_backend, url, table=table)

    @pytest.fixture
    def unreachable(self, engine: Engine) -> Backend:
        return DatabaseBackend(create_engine(engine.url.set(port=free_port())))

    def test_sql_can_join_what_is_held(self, backend: Any, engine: Engine) -> None:
        assert backend.capabilities.joinable
        taken(backend, "videos:1:k")
        reservations = backend.table
        with engine.connect() as connection:
            videos = select(literal("videos:1:k").label("name")).subquery("videos")
            joined = select(reservations.c.owner).join(videos, reservations.c.name == videos.c.name)
            assert connection.scalars(joined).all() == ["host:1"]


class SQLiteContract(DatabaseContract):
    @pytest.fixture
    def reopen(self, engine: Engine, table: str) -> Callable[[], Backend]:
        return partial(open_sqlite, str(engine.url), table)

    @pytest.fixture
    def unreachable(self, tmp_path: Path) -> Backend:
        return DatabaseBackend(create_engine(f"sqlite:///{tmp_path / 'no such folder' / 'file.sqlite'}"))


class TestSQLiteInWalMode(SQLiteContract):
    kind = "sqlite in WAL mode"


class TestSQLiteWithRollbackJournal(SQLiteContract):
    kind = "sqlite with a rollback journal"


class TestPostgreSQL(DatabaseContract):
    kind = "postgresql"


class TestPostgreSQLThatTells(DatabaseContract):
    kind = "postgresql"
    notify = True


class TestMariaDB(DatabaseContract):
    kind = "mariadb"


if STORES["mysql"].given:

    class TestMySQL(DatabaseContract):
        kind = "mysql"


class AsyncDatabaseContract(DatabaseContract):
    """The same tables through an asyncio driver."""

    driver: ClassVar[str]

    @pytest.fixture
    def url(self, engine: Engine) -> URL:
        return engine.url.set(drivername=self.driver)

    @pytest.fixture
    def with_prefix(self, url: URL, table: str) -> Iterator[Callable[[str], Backend]]:
        with ExitStack() as stack:
            text = url.render_as_string(hide_password=False)

            def make(prefix: str) -> Backend:
                backend = AsyncDatabaseBackend(async_engine(text), prefix, table=table, notify=self.notify)
                return stack.enter_context(closing(blocking(backend)))

            yield make

    @pytest.fixture
    def reopen(self, url: URL, table: str) -> Callable[[], Backend]:
        return partial(open_async_database, url.render_as_string(hide_password=False), table)

    @pytest.fixture
    def unreachable(self, url: URL, tmp_path: Path) -> Iterator[Backend]:
        nowhere = (
            url.set(port=free_port())
            if url.host
            else url.set(database=str(tmp_path / "no such folder" / "file.sqlite"))
        )
        backend = open_async_database(nowhere.render_as_string(hide_password=False), "reservations")
        with closing(backend):
            yield backend


class TestAioSQLiteInWalMode(AsyncDatabaseContract):
    kind = "sqlite in WAL mode"
    driver = "sqlite+aiosqlite"


class TestAioSQLiteWithRollbackJournal(AsyncDatabaseContract):
    kind = "sqlite with a rollback journal"
    driver = "sqlite+aiosqlite"


class TestAsyncpg(AsyncDatabaseContract):
    kind = "postgresql"
    driver = "postgresql+asyncpg"


class TestAsyncpgThatTells(AsyncDatabaseContract):
    kind = "postgresql"
    driver = "postgresql+asyncpg"
    notify = True


class TestAsyncPsycopg(AsyncDatabaseContract):
    kind = "postgresql"
    driver = "postgresql+psycopg"


class TestAiomysql(AsyncDatabaseContract):
    kind = "mariadb"
    driver = "mariadb+aiomysql"


class TestAsyncmy(AsyncDatabaseContract):
    kind = "mariadb"
    driver = "mariadb+asyncmy"


if STORES["mysql"].given:

    class TestAsyncMySQL(AsyncDatabaseContract):
        kind = "mysql"
        driver = "mysql+asyncmy"
