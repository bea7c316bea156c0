"""Stories for asyncio, told on every driver: a database with rows, and where their reservations live."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, delete, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from reservable import configure
from reservable.backends.opening import open_backend
from tests.sqlalchemy.models import Base, Video
from tests.stores import STORES, Stores

DRIVERS = {
    "aiosqlite": ("sqlite", "sqlite+aiosqlite"),
    "asyncpg": ("postgresql", "postgresql+asyncpg"),
    "psycopg": ("postgresql", "postgresql+psycopg"),
    "aiomysql": ("mariadb", "mariadb+aiomysql"),
    "asyncmy": ("mariadb", "mariadb+asyncmy"),
}

Story = Callable[[AsyncSession, Video], Awaitable[Any]]


@dataclass(frozen=True)
class AsyncPlace:
    """Where the rows are, by an asyncio driver and by a blocking one, and what `configure` is told."""

    kind: str
    url: str
    blocking_url: str
    where: str | None

    def tell(self, story: Story) -> Any:
        """Run the story in an event loop of its own, with a session and a new row."""

        async def whole() -> Any:
            engine = create_async_engine(self.url)
            try:
                async with AsyncSession(engine) as session:
                    video = Video(title="new")
                    session.add(video)
                    await session.commit()
                    await session.refresh(video)
                    await session.commit()
                    return await story(session, video)
            finally:
                await engine.dispose()

        return asyncio.run(whole())

    def with_engine(self, story: Callable[[AsyncEngine], Awaitable[Any]]) -> Any:
        """Run the story in an event loop of its own, with an engine."""

        async def whole() -> Any:
            engine = create_async_engine(self.url)
            try:
                return await story(engine)
            finally:
                await engine.dispose()

        return asyncio.run(whole())


class AsyncPlaces:
    """The places of this run, made when a test first needs one and shared by all."""

    def __init__(self, stores: Stores, folder: Path) -> None:
        self._stores = stores
        self._folder = folder
        self._stack = ExitStack()
        self._made: dict[str, AsyncPlace] = {}

    def __call__(self, kind: str) -> AsyncPlace:
        if kind not in self._made:
            self._made[kind] = self._make(kind)
        return self._made[kind]

    def _make(self, kind: str) -> AsyncPlace:
        wheres = {
            "memory": lambda: "memory://",
            "redis": lambda: self._stack.enter_context(self._stores.fresh("redis")),
        }
        database, driver = DRIVERS.get(kind, DRIVERS["aiosqlite"])
        if database == "sqlite":
            address = f"sqlite:///{self._folder / kind}.sqlite"
        else:
            address = self._stack.enter_context(self._stores.fresh(database))
        engine = create_engine(address)
        Base.metadata.create_all(engine)
        engine.dispose()
        url = make_url(address).set(drivername=driver).render_as_string(hide_password=False)
        return AsyncPlace(kind, url, address, wheres[kind]() if kind in wheres else None)

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(scope="session")
def async_places(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AsyncPlaces]:
    made = AsyncPlaces(stores, tmp_path_factory.mktemp("aio"))
    yield made
    made.close()


@pytest.fixture(params=["memory", "redis", *DRIVERS])
def place(request: pytest.FixtureRequest, async_places: AsyncPlaces) -> AsyncPlace:
    """Every kind of store and every driver in turn, configured, without rows."""
    return _configured(request, async_places)


@pytest.fixture(params=["redis", "aiosqlite", "asyncpg", "aiomysql"])
def shared_place(request: pytest.FixtureRequest, async_places: AsyncPlaces) -> AsyncPlace:
    """Every store that other processes see, in turn, configured, without rows."""
    return _configured(request, async_places)


def _configured(request: pytest.FixtureRequest, async_places: AsyncPlaces) -> AsyncPlace:
    kind = "redis" if request.param == "redis" else DRIVERS.get(request.param, ("sqlite", ""))[0]
    if kind in STORES:
        request.getfixturevalue(f"{kind}_url")  # skips or fails where the server is missing
    place = async_places(request.param)
    engine = create_engine(place.blocking_url)
    with Session(engine) as session:
        session.execute(delete(Video))
        session.commit()
    engine.dispose()
    with closing(open_backend(place.where or place.blocking_url)) as backend:
        for held in [*backend.list()]:
            backend.break_(held.name)
    configure(place.where)
    return place
