"""The stores that the tests run on: where each is, whether it is there, and a fresh database on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from uuid import uuid4

import redis
from sqlalchemy import URL, NullPool, create_engine, make_url, text

from tests.servers import Server, ServerMissing, start_mariadb, start_postgresql, start_redis


@dataclass(frozen=True)
class Store:
    """A kind of server, the variable that says where one is, and how to start one when it does not."""

    kind: str
    label: str
    start: Callable[[], Server] | None

    @property
    def variable(self) -> str:
        return f"RESERVABLE_TEST_{self.kind.upper()}_URL"

    @property
    def given(self) -> str | None:
        return os.environ.get(self.variable) or None


STORES = {
    store.kind: store
    for store in (
        Store("redis", "Redis", start_redis),
        Store("postgresql", "PostgreSQL", start_postgresql),
        Store("mariadb", "MariaDB", start_mariadb),
        Store("mysql", "MySQL 8", None),
    )
}

BROWSER = "Chromium"
"""Is no store, but missing in the same way."""

DATABASES = ["sqlite", "postgresql", "mariadb", *(["mysql"] if STORES["mysql"].given else [])]
"""The kinds of database that every test of a database runs on; MySQL 8 only when somebody brought one."""


def servers_are_required() -> bool:
    """Whether a server that is missing is an error (CI) and not a reason to skip (a newcomer's machine)."""
    return any(
        os.environ.get(variable, "").lower() not in ("", "0", "false")
        for variable in ("CI", "RESERVABLE_REQUIRE_SERVERS")
    )


class Stores:
    """The servers of one test run, each started when first asked for and closed at the end."""

    def __init__(self) -> None:
        self._servers: dict[str, Server] = {}
        self._missing: dict[str, ServerMissing] = {}
        self._redis_numbers = count(1)

    def url(self, kind: str) -> str:
        """Return where that server is, or raise `ServerMissing`."""
        store = STORES[kind]
        if store.given is not None:
            return store.given
        if store.start is None:
            raise ServerMissing(f"{store.variable} is not set")
        if kind in self._missing:
            raise self._missing[kind]
        if kind not in self._servers:
            try:
                self._servers[kind] = store.start()
            except ServerMissing as missing:
                self._missing[kind] = missing
                raise
        return self._servers[kind].url

    @contextmanager
    def fresh(self, kind: str) -> Iterator[str]:
        """Give a new empty database on that server, and drop it at the end with whoever is still connected."""
        if kind == "redis":
            with self._fresh_redis() as address:
                yield address
            return
        server = make_url(self.url(kind))
        name = f"reservable_{uuid4().hex[:12]}"
        _administer(server, f"CREATE DATABASE {name}")
        try:
            yield server.set(database=name).render_as_string(hide_password=False)
        finally:
            _drop(server, name)

    @contextmanager
    def _fresh_redis(self) -> Iterator[str]:
        address = self.url("redis")
        if STORES["redis"].given is None:
            number = next(self._redis_numbers) % 1023 + 1
            address = address.removesuffix("/0") + f"/{number}"
        # Of a server that somebody gave us, only the database that its URL names is ours to empty.
        with redis.Redis.from_url(address) as client:
            client.flushdb()
            yield address
            client.flushdb()

    def close(self) -> None:
        for server in self._servers.values():
            server.close()
        self._servers.clear()


def _administer(server: URL, *statements: str) -> None:
    engine = create_engine(server, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))


def _drop(server: URL, name: str) -> None:
    if server.get_backend_name() == "postgresql":
        _administer(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        return
    # A connection that a test left in a transaction holds a lock that DROP would wait for.
    engine = create_engine(server, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        left = connection.execute(
            text("SELECT id FROM information_schema.processlist WHERE db = :db"), {"db": name}
        )
        for (thread,) in left.all():
            connection.execute(text(f"KILL {thread}"))
        connection.execute(text(f"DROP DATABASE IF EXISTS {name}"))
