"""Fixtures for all tests: real servers, started when a test first needs one, and fresh databases on them."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

from tests.servers import ServerMissing
from tests.stores import BROWSER, DATABASES, STORES, Stores, servers_are_required

MEMORY, ENOUGH = Path("/dev/shm"), 2 * 2**30
"""Where files are in memory, and the bytes that must be free there for the tests to use it.

Most of what SQLite does in a test is to wait for the disk, which tells nobody anything.
"""

if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ENOUGH:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.fixture(scope="session")
def stores() -> Iterator[Stores]:
    """The servers of this run."""
    servers = Stores()
    yield servers
    servers.close()


@pytest.fixture(scope="session")
def redis_url(stores: Stores) -> str:
    """A Redis server, shared by all tests: use names of your own, or `fresh_database("redis")`."""
    return _server(stores, "redis")


@pytest.fixture(scope="session")
def postgresql_url(stores: Stores) -> str:
    """A PostgreSQL server, shared by all tests; tables belong into `fresh_database("postgresql")`."""
    return _server(stores, "postgresql")


@pytest.fixture(scope="session")
def mariadb_url(stores: Stores) -> str:
    """A MariaDB server, shared by all tests; tables belong into `fresh_database("mariadb")`."""
    return _server(stores, "mariadb")


@pytest.fixture(scope="session")
def mysql_url(stores: Stores) -> str:
    """A MySQL 8 server, when `RESERVABLE_TEST_MYSQL_URL` names one."""
    return _server(stores, "mysql")


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """An SQLite file of this test alone."""
    return f"sqlite:///{tmp_path / 'test.sqlite'}"


@pytest.fixture
def fresh_database(stores: Stores, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Make a fresh database: `fresh_database("postgresql")` returns its URL; it is dropped after the test.

    Kinds: sqlite, postgresql, mariadb, mysql, redis. May be called several times.
    """
    with ExitStack() as stack:
        files = iter(range(1_000_000))

        def fresh(kind: str) -> str:
            if kind == "sqlite":
                return f"sqlite:///{tmp_path / f'fresh-{next(files)}.sqlite'}"
            _server(stores, kind)
            return stack.enter_context(stores.fresh(kind))

        yield fresh


@pytest.fixture(params=DATABASES)
def any_database_url(request: pytest.FixtureRequest, fresh_database: Callable[[str], str]) -> str:
    """A fresh database of every kind in turn."""
    return fresh_database(request.param)


@pytest.fixture(params=[*DATABASES, "redis"])
def any_store_url(request: pytest.FixtureRequest, fresh_database: Callable[[str], str]) -> str:
    """A fresh store of every kind in turn: the databases, and Redis."""
    return fresh_database(request.param)


@pytest.fixture
def make_engine(fresh_database: object) -> Iterator[Callable[..., Engine]]:
    """`create_engine`, with the engine disposed of before its database is dropped."""
    with ExitStack() as stack:

        def make(url: str, **options: Any) -> Engine:
            engine = create_engine(url, **options)
            stack.callback(engine.dispose)
            return engine

        yield make


def _server(stores: Stores, kind: str) -> str:
    """Return the server's URL; when it is not there, skip, or fail where all servers must be (CI)."""
    try:
        return stores.url(kind)
    except ServerMissing as missing:
        label = STORES[kind].label
        if servers_are_required() and STORES[kind].start is not None:
            pytest.fail(f"{label} is required here: {missing}", pytrace=False)
        pytest.skip(f"{label}: {missing}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say plainly at the end which servers the tests did without, and whether they did without the browser."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.getreports("skipped")
        if isinstance(report.longrepr, tuple)
    )
    labels = (*(store.label for store in STORES.values()), BROWSER)
    without = {reason: tests for reason, tests in reasons.items() if reason.partition(": ")[0] in labels}
    mysql = STORES["mysql"]
    if not mysql.given and not any(reason.startswith(f"{mysql.label}: ") for reason in without):
        # Its turns are not even collected: it is on few machines, and Debian has no package of it.
        terminalreporter.write_line(f"Not run: {mysql.label} ({mysql.variable} is not set)")
    for reason, tests in without.items():
        terminalreporter.write_line(f"Not run: {tests} tests on {reason}")
