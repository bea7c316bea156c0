"""What the heir of the suite says about its store, and the words that all tests of the suite use."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from secrets import token_hex
from typing import TypeVar

import pytest

from reservable.backends.base import Backend
from reservable.grants import Grant

T = TypeVar("T")

NAME = "videos:249:download"
OWNER = "host:1"

MINUTE = timedelta(minutes=1)
SHORT = timedelta(milliseconds=60)

RESOLUTION = timedelta(milliseconds=1)
"""How coarse a store's clock may be, and so how much shorter than asked a reservation, by any other clock."""

SKEW = timedelta(milliseconds=50)
"""How far apart a store may tell the same end twice: one that only knows what is left reads its clock each time,
and may be interrupted between the two."""


class StoreFixtures:
    """One store: the fixtures that an heir overrides.

    `backend` and `with_prefix` for every store, `reopen` and `unreachable` for one that declares `shared`.
    """

    @pytest.fixture
    def backend(self) -> Backend:
        """The backend under test, without a prefix, on a store that holds nothing."""
        raise NotImplementedError("override the fixture `backend`")

    @pytest.fixture
    def second(self, backend: Backend) -> Backend:
        """Another backend object on the same store, as another process has one.

        Where the store is this process's own, the same object.
        """
        return backend

    @pytest.fixture
    def with_prefix(self, backend: Backend) -> Callable[[str], Backend]:
        """How to make a backend with this prefix on the same store."""
        raise NotImplementedError("override the fixture `with_prefix`")

    @pytest.fixture
    def reopen(self, backend: Backend) -> Callable[[], Backend]:
        """How another process makes its backend on the same store: a picklable callable."""
        raise NotImplementedError("capabilities.shared is declared: override the fixture `reopen`")

    @pytest.fixture
    def unreachable(self, backend: Backend) -> Backend:
        """A backend of the same kind whose store is not there."""
        raise NotImplementedError("capabilities.shared is declared: override the fixture `unreachable`")


def token() -> str:
    """A fresh token, made as the library makes them."""
    return token_hex(16)


def taken(
    backend: Backend, name: str = NAME, lifetime: timedelta = MINUTE, *, by: str | None = None
) -> Grant:
    """Take a name that is free."""
    grant = backend.acquire(name, by or token(), OWNER, lifetime)
    assert grant is not None, f"{name} was free and not granted"
    return grant


def is_free(backend: Backend, name: str = NAME) -> bool:
    """Whether the name is granted to a newcomer, who gives it back."""
    grant = backend.acquire(name, token(), "a newcomer", MINUTE)
    if grant is not None:
        backend.release(name, grant.token)
    return grant is not None


def over(backend: Backend, name: str = NAME) -> None:
    """Wait until nobody holds the name any more."""
    eventually(lambda: backend.holder(name) is None)


def extend_each(backend: Backend, held: Sequence[tuple[str, str]], lifetime: timedelta) -> dict[str, int]:
    """`extend_many` where the store offers it; where it does not, what is done instead: `extend` one by one."""
    many = getattr(backend, "extend_many", None)
    if many is not None:
        return many(held, lifetime)  # type: ignore[no-any-return]
    ends = {name: backend.extend(name, token, lifetime) for name, token in held}
    return {name: until for name, until in ends.items() if until is not None}


def eventually(condition: Callable[[], T | None], within: float = 5.0, every: float = 0.001) -> T:
    """Ask until the answer is true, and return it."""
    until = time.monotonic() + within
    while not (answer := condition()):
        assert time.monotonic() < until, f"still {answer!r} after {within} seconds"
        time.sleep(every)
    return answer


def every_verb(
    backend: Backend, names: Sequence[str] = (NAME, "videos:250:download")
) -> dict[str, Callable[[], object]]:
    """Every verb that asks the store, by its name, ready to be called."""
    name = names[0]
    return {
        "acquire": lambda: backend.acquire(name, token(), OWNER, MINUTE),
        "acquire_first": lambda: backend.acquire_first(names, token(), OWNER, MINUTE),
        "release": lambda: backend.release(name, token()),
        "extend": lambda: backend.extend(name, token(), MINUTE),
        "extend_many": lambda: extend_each(backend, [(name, token()) for name in names], MINUTE),
        "holder": lambda: backend.holder(name),
        "break_": lambda: backend.break_(name),
        "list": lambda: [*backend.list()],
    }
