"""One name in every store, for handles of both colours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from reservable import AsyncReservation, Reservation, configure
from reservable.backends.opening import Store
from tests.stores import DATABASES

_names = count()


@dataclass
class Handles:
    """Makes handles on one name of a store that nobody else uses."""

    store: Store
    name: str

    def blocking(self, duration: Any = 60, **options: Any) -> Reservation:
        return Reservation(self.store.blocking, self.name, duration, owner="a test", **options)

    def awaited(self, duration: Any = 60, **options: Any) -> AsyncReservation:
        return AsyncReservation(self.store.awaited, self.name, duration, owner="a test", **options)

    @property
    def is_free(self) -> bool:
        return self.store.blocking.holder(self.name) is None


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("RESERVABLE_URL", raising=False)
    configure(None)
    yield
    configure("memory://")  # closes what the test has opened
    configure(None)


@pytest.fixture(params=["memory", "redis", *DATABASES])
def handles(request: pytest.FixtureRequest, fresh_database: Callable[[str], str]) -> Iterator[Handles]:
    """Every kind of store in turn."""
    yield from _handles(request.param, fresh_database)


@pytest.fixture(params=["redis", "sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest, fresh_database: Callable[[str], str]) -> Iterator[Handles]:
    """A store of every make that other processes see."""
    yield from _handles(request.param, fresh_database)


def _handles(kind: str, fresh_database: Callable[[str], str]) -> Iterator[Handles]:
    store = Store("memory://" if kind == "memory" else fresh_database(kind))
    list(store.blocking.list())  # connected, and the table is there: short lifetimes go by from here on
    yield Handles(store, f"things:{next(_names)}:k")
    store.close()


def told(story: Awaitable[Any]) -> Any:
    """Run a story for asyncio in a loop of its own."""

    async def whole() -> Any:
        async with asyncio.timeout(60):
            return await story

    return asyncio.run(whole())
