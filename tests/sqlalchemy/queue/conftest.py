"""Every kind of database in turn, with the tables of the queues."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, sessionmaker

from tests.sqlalchemy.asynchronous.conftest import DRIVERS
from tests.sqlalchemy.queue.models import Base
from tests.stores import DATABASES, Stores

Sessions = sessionmaker[Session]
Story = Callable[[AsyncSession], Awaitable[Any]]
Tell = Callable[[Story], Any]


class Queues:
    """Databases of this run, made when a test first needs one."""

    def __init__(self, stores: Stores, folder: Path) -> None:
        self._stores = stores
        self._folder = folder
        self._stack = ExitStack()
        self._made: dict[str, Engine] = {}

    def __call__(self, kind: str) -> Engine:
        if kind not in self._made:
            url = f"sqlite:///{self._folder / 'queue.sqlite'}"
            if kind != "sqlite":
                url = self._stack.enter_context(self._stores.fresh(kind))
            engine = self._made[kind] = create_engine(url)
            self._stack.callback(engine.dispose)
        return self._made[kind]

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(scope="session")
def queues(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queues]:
    made = Queues(stores, tmp_path_factory.mktemp("queues"))
    yield made
    made.close()


def emptied(request: pytest.FixtureRequest, queues: Queues, kind: str) -> Engine:
    """The database of this kind, without rows."""
    if kind != "sqlite":
        request.getfixturevalue(f"{kind}_url")  # skips or fails where the server is missing
    engine = queues(kind)
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        for table in reversed(Base.metadata.sorted_tables):
            connection.execute(table.delete())
    return engine


@pytest.fixture(params=DATABASES)
def engine(request: pytest.FixtureRequest, queues: Queues) -> Engine:
    """Every kind of database in turn, without rows."""
    return emptied(request, queues, request.param)


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    with Session(engine, expire_on_commit=False) as session:
        yield session


@pytest.fixture
def other(engine: Engine) -> Iterator[Session]:
    """Another worker's."""
    with Session(engine, expire_on_commit=False) as session:
        yield session


@pytest.fixture
def url(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


@pytest.fixture
def sessions(engine: Engine) -> Sessions:
    """What a worker makes its sessions with."""
    return sessionmaker(engine, expire_on_commit=False)


@pytest.fixture
def stop() -> threading.Event:
    """Set by a test to have its worker stop."""
    return threading.Event()


@pytest.fixture(params=[*DRIVERS])
def tell(request: pytest.FixtureRequest, queues: Queues) -> Tell:
    """Run a story in an event loop of its own, on every driver in turn."""
    kind, driver = DRIVERS[request.param]
    url = emptied(request, queues, kind).url.set(drivername=driver)

    def told(story: Story) -> Any:
        async def whole() -> Any:
            engine = create_async_engine(url)
            try:
                async with AsyncSession(engine, expire_on_commit=False) as session:
                    return await story(session)
            finally:
                await engine.dispose()

        return asyncio.run(whole())

    return told
