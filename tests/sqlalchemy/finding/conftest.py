"""One database of each kind for all tests of this folder, emptied after each test that used it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from sqlalchemy import Engine

from reservable import configure
from tests.sqlalchemy.finding.worlds import (
    EVERYWHERE,
    SERVERS,
    SHARED,
    World,
    close_own_connections,
    emptied,
    open_engine,
)
from tests.stores import DATABASES, Stores


@pytest.fixture(scope="session")
def kept_engine(
    stores: Stores, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Engine]]:
    """The engine on this run's database of a kind."""
    with ExitStack() as stack:
        engines: dict[str, Engine] = {}

        def engine(kind: str) -> Engine:
            if kind not in engines:
                if kind == "sqlite":
                    url = f"sqlite:///{tmp_path_factory.mktemp('finding') / 'rows.sqlite'}"
                else:
                    url = stack.enter_context(stores.fresh(kind))
                engines[kind] = open_engine(kind, url)
                stack.callback(engines[kind].dispose)
                stack.callback(close_own_connections, engines[kind])
            return engines[kind]

        yield engine


@pytest.fixture
def make_world(
    request: pytest.FixtureRequest, kept_engine: Callable[[str], Engine]
) -> Iterator[Callable[[str], World]]:
    """The world of a kind, for this test."""
    with ExitStack() as stack:

        def make(kind: str) -> World:
            if kind == "memory":
                engine = open_engine(kind, "")
                stack.callback(engine.dispose)
                stack.callback(close_own_connections, engine)
                return World(kind, engine, stack)
            database = kind.removeprefix("redis+")
            if database != "sqlite":
                request.getfixturevalue(f"{database}_url")  # skips, or fails, where there is no such server
            engine = kept_engine(database)
            stack.enter_context(emptied(engine))
            if kind != database:
                configure(request.getfixturevalue("fresh_database")("redis"))
                stack.callback(configure)
            return World(kind, engine, stack)

        yield make


@pytest.fixture(params=EVERYWHERE)
def world(request: pytest.FixtureRequest, make_world: Callable[[str], World]) -> World:
    """Every place in turn."""
    return make_world(request.param)


@pytest.fixture(params=SHARED)
def shared(request: pytest.FixtureRequest, make_world: Callable[[str], World]) -> World:
    """Every place that a second connection can see."""
    return make_world(request.param)


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, make_world: Callable[[str], World]) -> World:
    """Every place where rows can be locked."""
    return make_world(request.param)


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, make_world: Callable[[str], World]) -> World:
    """Every place where reservations are in the database of the rows."""
    return make_world(request.param)


@pytest.fixture(params=["redis+sqlite", *DATABASES])
def dialect(request: pytest.FixtureRequest, make_world: Callable[[str], World]) -> World:
    """Every dialect of SQL for the search beside, and one search in batches: for the shapes of statements."""
    return make_world(request.param)


@pytest.fixture(params=["memory", "redis+sqlite", "postgresql"])
def some(request: pytest.FixtureRequest, make_world: Callable[[str], World]) -> World:
    """One of each way to find, for what a row becomes once it is found: the same code everywhere."""
    return make_world(request.param)


@pytest.fixture(params=["redis+sqlite", "postgresql"])
def apart(request: pytest.FixtureRequest, make_world: Callable[[str], World]) -> World:
    """As `some`, without the one in memory, whose statements cannot be told from the caller's."""
    return make_world(request.param)


@pytest.fixture
def postgresql(make_world: Callable[[str], World]) -> World:
    return make_world("postgresql")


@pytest.fixture
def mariadb(make_world: Callable[[str], World]) -> World:
    return make_world("mariadb")


@pytest.fixture
def memory(make_world: Callable[[str], World]) -> World:
    return make_world("memory")
