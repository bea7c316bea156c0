"""Backends, and things kept alive in them that are let go after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from reservable import keepalive
from reservable.backends.base import Backend
from reservable.backends.memory import MemoryBackend
from reservable.backends.opening import open_backend
from tests.keepalive.doubles import Held, Watched, held


@pytest.fixture
def connect() -> Iterator[Callable[[str], Backend]]:
    with ExitStack() as stack:
        yield lambda url: stack.enter_context(closing(open_backend(url)))


@pytest.fixture(params=["redis", "postgresql", "sqlite"])
def url(request: pytest.FixtureRequest, fresh_database: Callable[[str], str]) -> str:
    return fresh_database(request.param)


@pytest.fixture
def redis_store(fresh_database: Callable[[str], str]) -> str:
    return fresh_database("redis")


@pytest.fixture
def memory() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
def watched(memory: MemoryBackend) -> Watched:
    return Watched(memory)


@pytest.fixture
def hold(connect: object) -> Iterator[Callable[..., Held]]:
    """`held`, and kept alive."""
    made: list[Held] = []

    def hold(*arguments: Any, **options: Any) -> Held:
        one = held(*arguments, **options)
        keepalive.keep(one)
        made.append(one)
        return one

    yield hold
    for one in made:
        keepalive.let_go(one)
