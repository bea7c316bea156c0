"""Ways to wait for a name that another process holds, each opened in the process that uses it.

way = WAYS[name](url)
way.hold("a")               # what nobody holds
way.take("a", 10)           # in another process: waits for up to so many seconds
way.release("a")
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import psycopg
import redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.lock import Lock as AsyncLock
from redis.lock import Lock
from sqlalchemy import make_url

from benchmarks.levels import must
from benchmarks.models import engine_for
from reservable import AsyncReservation, Reservation
from reservable.backends.database import DatabaseBackend
from reservable.backends.opening import Store

LIFETIME = 30
"""Seconds; longer than anybody holds or waits."""


class Way(Protocol):
    def hold(self, name: str) -> None:
        """Take what nobody holds."""

    def take(self, name: str, within: float) -> bool:
        """Wait for the name so many seconds at most; whether it is ours."""

    def release(self, name: str) -> None:
        """Hand it over to who waits."""

    def close(self) -> None:
        """Close the connections."""


class Locks:
    """An object each time, with `acquire` and `release`; `limit` is what `acquire` calls the time to wait."""

    def __init__(self, make: Callable[[str], Any], limit: str, close: Callable[[], Any]) -> None:
        self._make = make
        self._limit = limit
        self._close = close
        self._held: dict[str, Any] = {}

    def hold(self, name: str) -> None:
        must(self.take(name, LIFETIME / 3))

    def take(self, name: str, within: float) -> bool:
        lock = self._held[name] = self._make(name)
        return bool(self._do(lock.acquire(**{self._limit: within})))

    def release(self, name: str) -> None:
        self._do(self._held.pop(name).release())

    def close(self) -> None:
        self._do(self._close())

    def _do(self, answer: Any) -> Any:
        return answer


class AsyncLocks(Locks):
    """The same in an event loop; the time to enter and to leave it is counted to the way's own."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._runner = asyncio.Runner()

    def close(self) -> None:
        super().close()
        self._runner.close()

    def _do(self, answer: Any) -> Any:
        return self._runner.run(answer)


class Pop:
    """The least that Redis can do: who waits is in BLPOP, and a release pushes."""

    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url)

    def hold(self, name: str) -> None:
        """Nobody holds anything here."""

    def take(self, name: str, within: float) -> bool:
        return self._client.blpop([name], timeout=within) is not None

    def release(self, name: str) -> None:
        self._client.lpush(name, 1)

    def close(self) -> None:
        self._client.close()


class Notified:
    """The least that PostgreSQL can do: who waits listens, and a release notifies."""

    def __init__(self, url: str) -> None:
        address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._connection = psycopg.connect(address, autocommit=True)
        self._connection.execute("LISTEN handed_over")

    def hold(self, name: str) -> None:
        """Nobody holds anything here."""

    def take(self, name: str, within: float) -> bool:
        return any(told.payload == name for told in self._connection.notifies(timeout=within))

    def release(self, name: str) -> None:
        self._connection.execute("SELECT pg_notify('handed_over', %s)", [name])

    def close(self) -> None:
        self._connection.close()


def notifies() -> bool:
    """Whether a release can wake who waits on PostgreSQL."""
    return "notify" in inspect.signature(DatabaseBackend).parameters


def _ours(url: str) -> Way:
    backend = Store(url if url.startswith("redis") else engine_for(url)).blocking
    return Locks(lambda name: Reservation(backend, name, LIFETIME), "wait", backend.close)


def _ours_notified(url: str) -> Way:
    make: Any = DatabaseBackend  # its type is that of a release which may not have the option: see `notifies`
    backend = make(engine_for(url), notify=True)
    return Locks(lambda name: Reservation(backend, name, LIFETIME), "wait", backend.close)


def _ours_async(url: str) -> Way:
    backend = Store(url).awaited
    return AsyncLocks(lambda name: AsyncReservation(backend, name, LIFETIME), "wait", backend.close)


def _lock(url: str) -> Way:
    client = redis.Redis.from_url(url)
    return Locks(partial(Lock, client, timeout=LIFETIME), "blocking_timeout", client.close)


def _async_lock(url: str) -> Way:
    client = AsyncRedis.from_url(url)
    return AsyncLocks(partial(AsyncLock, client, timeout=LIFETIME), "blocking_timeout", client.aclose)


def _python_redis_lock(url: str) -> Way:
    import redis_lock

    client = redis.Redis.from_url(url)
    return Locks(partial(redis_lock.Lock, client, expire=LIFETIME), "timeout", client.close)


OURS, OURS_ASYNC, OURS_NOTIFIED = "ours", "ours, asyncio", "ours, notify=True"
LOCK, ASYNC_LOCK, PYTHON_REDIS_LOCK = "redis-py Lock", "redis.asyncio Lock", "python-redis-lock"
POP, NOTIFIED = "bare BLPOP", "bare LISTEN and NOTIFY"

WAYS: dict[str, Callable[[str], Way]] = {
    OURS: _ours,
    OURS_ASYNC: _ours_async,
    OURS_NOTIFIED: _ours_notified,
    LOCK: _lock,
    ASYNC_LOCK: _async_lock,
    PYTHON_REDIS_LOCK: _python_redis_lock,
    POP: Pop,
    NOTIFIED: Notified,
}
