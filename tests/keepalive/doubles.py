"""Something that can be kept alive, and a store that counts, fails and hangs as it is told."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from secrets import token_hex
from typing import Any

from reservable import keepalive
from reservable.errors import BackendError
from reservable.grants import Grant, Released
from tests.waiting import eventually

NAME = "videos:1:k"


class Held:
    """A grant, as a handle has it; what the keeper says of it is written down."""

    def __init__(self, backend: Any, grant: Grant, asked_at: float, lifetime: timedelta) -> None:
        self.backend = backend
        self.name = grant.name
        self.grant: Grant | None = grant
        self.token = grant.token
        self.lifetime = lifetime
        self.renewing = True
        self.deadline = asked_at + lifetime.total_seconds()
        self.pid = os.getpid()
        self.lost = threading.Event()
        self.lost_at = 0.0
        self.losses = 0
        self.extended = 0

    @property
    def renewal(self) -> timedelta:
        return self.lifetime

    def standing(self) -> tuple[Grant, float] | None:
        grant = self.grant
        return (grant, self.deadline) if grant is not None and self.pid == os.getpid() else None

    def prolong(self, grant: Grant, until: int, deadline: float) -> None:
        if self.grant is not None and self.grant.token == grant.token:
            self.grant, self.deadline = replace(grant, until=until), deadline
            self.extended += 1

    def lose(self, grant: Grant) -> None:
        if self.grant is not None and self.grant.token == grant.token:
            self.grant, self.lost_at = None, time.monotonic()
            self.losses += 1
            self.lost.set()

    def extend(self, seconds: float) -> None:
        """As the user does it."""
        sent, left = time.monotonic(), timedelta(seconds=seconds)
        until = self.backend.extend(self.name, self.token, left)
        assert until is not None
        assert self.grant is not None
        self.grant, self.deadline = replace(self.grant, until=until), sent + seconds
        keepalive.keep(self, sent)

    def release(self) -> Released:
        keepalive.let_go(self)
        released: Released = self.backend.release(self.name, self.token)
        self.grant = None
        return released


def held(backend: Any, name: str = NAME, seconds: float = 0.6, *, renewing: bool = True) -> Held:
    """Take a free name; it is not kept yet."""
    sent, lifetime = time.monotonic(), timedelta(seconds=seconds)
    grant = backend.acquire(name, token_hex(16), "host:1", lifetime)
    assert grant is not None
    one = Held(backend, grant, sent, lifetime)
    one.renewing = renewing
    return one


def extended(one: Held, times: int) -> None:
    """Wait until it was extended that often."""
    eventually(lambda: one.extended >= times)


def is_free(backend: Any, name: str = NAME) -> bool:
    grant = backend.acquire(name, token_hex(16), "a newcomer", timedelta(seconds=5))
    if grant is not None:
        backend.release(name, grant.token)
    return grant is not None


class Watched:
    """A backend in front of another: how many were extended in each call, and trouble on demand."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.calls: list[int] = []
        self.replies = threading.Event()
        """While it is cleared, what was asked is done and the answers hang."""
        self.replies.set()
        self.trouble: Callable[[Sequence[tuple[str, str]]], Exception | None] = lambda _: None

    def __getattr__(self, verb: str) -> Any:
        return getattr(self.store, verb)

    def was_asked(self, times: int) -> bool:
        return len(self.calls) >= times

    def extend_many(self, asked: Sequence[tuple[str, str]], lifetime: timedelta) -> dict[str, int]:
        self.calls.append(len(asked))
        error = self.trouble(asked)
        if error is not None:
            raise error
        ends: dict[str, int] = self.store.extend_many(asked, lifetime)
        assert self.replies.wait(30)
        return ends


class OneByOne:
    """Somebody else's backend, without the optional verb."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.extend, self.acquire = store.extend, store.acquire
        self.release, self.holder = store.release, store.holder


def refusing(_: object) -> Exception:
    return BackendError("the store is down")
