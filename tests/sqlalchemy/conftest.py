"""The mixin's tests run on every store: a model's table, and where its rows' reservations live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session

from reservable import configure
from tests.sqlalchemy.models import Base, Video
from tests.stores import DATABASES, Stores


@dataclass(frozen=True)
class Place:
    """A database with the tables of the models, and what `configure` is told (None: nothing, the default)."""

    kind: str
    engine: Engine
    url: str
    where: str | None


class Places:
    """The places of this run, made when a test first needs one and shared by all: use rows of your own."""

    def __init__(self, stores: Stores, folder: Path) -> None:
        self._stores = stores
        self._folder = folder
        self._stack = ExitStack()
        self._made: dict[str, Place] = {}

    def __call__(self, kind: str) -> Place:
        if kind not in self._made:
            self._made[kind] = self._make(kind)
        return self._made[kind]

    def _make(self, kind: str) -> Place:
        wheres = {
            "memory": lambda: "memory://",
            "redis": lambda: self._stack.enter_context(self._stores.fresh("redis")),
        }
        where = wheres[kind]() if kind in wheres else None
        if kind in DATABASES and kind != "sqlite":
            url = self._stack.enter_context(self._stores.fresh(kind))
        else:
            url = f"sqlite:///{self._folder / kind}.sqlite"
        engine = create_engine(url)
        self._stack.callback(engine.dispose)
        Base.metadata.create_all(engine)
        return Place(kind, engine, url, where)

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(scope="session")
def places(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    made = Places(stores, tmp_path_factory.mktemp("places"))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test begins, and leaves the process, as if nothing had ever been configured."""
    monkeypatch.delenv("RESERVABLE_URL", raising=False)
    configure(None)
    yield
    monkeypatch.delenv("RESERVABLE_URL", raising=False)
    configure("memory://")  # closes what the test has opened
    configure(None)


@pytest.fixture(params=["memory", "redis", *DATABASES])
def place(request: pytest.FixtureRequest, places: Places) -> Place:
    """Every kind of store in turn, configured."""
    return _configured(request, places)


@pytest.fixture(params=["redis", *DATABASES])
def shared_place(request: pytest.FixtureRequest, places: Places) -> Place:
    """Every store that other processes see, in turn, configured."""
    return _configured(request, places)


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, places: Places) -> Place:
    """Every kind of database in turn; reservations live in it by default."""
    return _configured(request, places)


def _configured(request: pytest.FixtureRequest, places: Places) -> Place:
    if request.param in ("redis", "postgresql", "mariadb", "mysql"):
        request.getfixturevalue(f"{request.param}_url")  # skips or fails where the server is missing
    place = places(request.param)
    if place.where is not None:
        configure(place.where)
    return place


@pytest.fixture
def sessions() -> Iterator[Callable[..., Session]]:
    """`Session(...)`, closed after the test."""
    with ExitStack() as stack:

        def make(*arguments: Any, **options: Any) -> Session:
            return stack.enter_context(Session(*arguments, **options))

        yield make


@pytest.fixture
def session(place: Place, sessions: Callable[..., Session]) -> Session:
    return sessions(place.engine)


@pytest.fixture
def video(session: Session) -> Video:
    """A new row, committed and loaded."""
    video = Video(title="new")
    session.add(video)
    session.commit()
    session.refresh(video)
    session.commit()
    return video
