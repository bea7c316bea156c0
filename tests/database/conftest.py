"""Who waits and who holds, in the tests of PostgreSQL's NOTIFY."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from importlib.util import find_spec
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, make_url

from reservable.backends.database import DatabaseBackend
from reservable.testing.colours import LoopThread
from tests.database.notified import DRIVERS, MINUTE, NAME, is_async, open_by


@pytest.fixture
def url(fresh_database: Callable[[str], str]) -> str:
    return fresh_database("postgresql")


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    """Each driver that can listen, in blocking code or in asyncio."""
    name = str(request.param)
    if find_spec(name.split(maxsplit=1)[0]) is None:
        pytest.skip(f"{name} is not installed")
    return name


@pytest.fixture
def connect(driver: str) -> Iterator[Callable[..., Any]]:
    """A backend by the driver that tells its waiters; closed after the test."""
    with ExitStack() as stack:
        loop = stack.enter_context(closing(LoopThread())) if is_async(driver) else None
        yield lambda url, **options: stack.enter_context(open_by(driver, url, loop, **options))


@pytest.fixture
def waiter(url: str, connect: Callable[..., Any]) -> Any:
    return connect(url)


@pytest.fixture
def holder(url: str, make_engine: Callable[..., Engine]) -> Iterator[DatabaseBackend]:
    """Somebody who holds the name."""
    with closing(DatabaseBackend(make_engine(url), notify=True)) as backend:
        assert backend.acquire(NAME, "H", "holder", MINUTE)
        yield backend


@pytest.fixture
def admin(url: str) -> Iterator[psycopg.Connection[Any]]:
    address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection
