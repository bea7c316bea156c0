"""Reservations in this process's memory: for tests, and for databases that live in memory themselves."""

from __future__ import annotations

import fnmatch
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NoReturn

from reservable.backends.base import Capabilities
from reservable.errors import ConfigurationError, NotSupported
from reservable.grants import MICROSECOND, Grant, Holder, Released
from reservable.names import check_prefix


@dataclass(frozen=True, slots=True)
class _Row:
    grant: Grant
    owner: str


class MemoryBackend:
    """One process's reservations, shared by its threads and tasks; another process sees none of them."""

    capabilities = Capabilities(shared=False)

    def __init__(self, prefix: str = "") -> None:
        self.prefix = check_prefix(prefix)
        self._rows: dict[str, _Row] = {}
        self._fence = 0
        self._lock = threading.Lock()
        # The wall clock gives the epoch, once; the monotonic clock the time since, so that a clock that is
        # set back or forward neither ends a reservation nor prolongs it.
        self._epoch = time.time_ns() - time.monotonic_ns()

    def watch(self, name: str) -> NoReturn:
        """Raises `NotSupported`: who waits in memory asks again."""
        raise NotSupported(f"memory does not tell of the release of {name}: waiters ask again")

    def twin(self) -> AsyncMemoryBackend:
        """The same reservations for asyncio."""
        return AsyncMemoryBackend(self)

    def _now(self) -> int:
        return (self._epoch + time.monotonic_ns()) // 1000

    def _live(self, name: str, now: int) -> _Row | None:
        row = self._rows.get(name)
        return row if row is not None and row.grant.until > now else None

    def acquire(self, name: str, token: str, owner: str, lifetime: timedelta) -> Grant | None:
        with self._lock:
            return self._acquire(name, token, owner, lifetime)

    def _acquire(self, name: str, token: str, owner: str, lifetime: timedelta) -> Grant | None:
        now = self._now()
        standing = self._live(name, now)
        if standing is not None:
            return standing.grant if standing.grant.token == token else None
        self._fence = max(now, self._fence + 1)
        grant = Grant(name, token, self._fence, now, now + lifetime // MICROSECOND)
        self._rows[name] = _Row(grant, owner)
        return grant

    def acquire_first(
        self, names: Sequence[str], token: str, owner: str, lifetime: timedelta
    ) -> Grant | None:
        with self._lock:
            now = self._now()
            for name in names:
                standing = self._live(name, now)
                if standing is not None and standing.grant.token == token:
                    return standing.grant
            for name in names:
                grant = self._acquire(name, token, owner, lifetime)
                if grant is not None:
                    return grant
            return None

    def release(self, name: str, token: str) -> Released:
        with self._lock:
            row = self._live(name, self._now())
            if row is None:
                return Released.NOT_HELD
            if row.grant.token != token:
                return Released.BY_ANOTHER
            del self._rows[name]
            return Released.YES

    def extend(self, name: str, token: str, lifetime: timedelta) -> int | None:
        return self.extend_many([(name, token)], lifetime).get(name)

    def extend_many(self, held: Sequence[tuple[str, str]], lifetime: timedelta) -> dict[str, int]:
        ends = {}
        with self._lock:
            now = self._now()
            until = now + lifetime // MICROSECOND
            for name, token in held:
                row = self._live(name, now)
                if row is not None and row.grant.token == token:
                    self._rows[name] = _Row(replace(row.grant, until=until), row.owner)
                    ends[name] = until
        return ends

    def holder(self, name: str) -> Holder | None:
        with self._lock:
            now = self._now()
            row = self._live(name, now)
            return _holder(row, now) if row is not None else None

    def break_(self, name: str) -> bool:
        with self._lock:
            held = self._live(name, self._now()) is not None
            self._rows.pop(name, None)
            return held

    def list(self, pattern: str = "*") -> Iterator[Holder]:
        matches = re.compile(fnmatch.translate(pattern)).match
        with self._lock:
            now = self._now()
            rows = [row for name, row in self._rows.items() if row.grant.until > now and matches(name)]
        return iter([_holder(row, now) for row in rows])

    def prune(self) -> int:
        with self._lock:
            now = self._now()
            over = [name for name, row in self._rows.items() if row.grant.until <= now]
            for name in over:
                del self._rows[name]
            return len(over)

    def close(self) -> None:
        """Nothing to give up."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} prefix={self.prefix!r} at {id(self):#x}>"


class AsyncMemoryBackend:
    """`MemoryBackend` for asyncio; with `backend`, the same reservations as that one's, and its prefix.

    Raises `ConfigurationError` for a prefix that cannot be, or that is not the given backend's.
    """

    asynchronous = True
    capabilities = MemoryBackend.capabilities

    def __init__(self, backend: MemoryBackend | None = None, prefix: str = "") -> None:
        if backend is not None and prefix not in ("", backend.prefix):
            raise ConfigurationError(f"the backend already has the prefix {backend.prefix!r}")
        self._backend = MemoryBackend(prefix) if backend is None else backend
        self.prefix = self._backend.prefix

    def watch(self, name: str) -> NoReturn:
        """Raises `NotSupported`, as that of the other colour."""
        self._backend.watch(name)

    def twin(self) -> MemoryBackend:
        """The same reservations for blocking code."""
        return self._backend

    async def acquire(self, name: str, token: str, owner: str, lifetime: timedelta) -> Grant | None:
        return self._backend.acquire(name, token, owner, lifetime)

    async def acquire_first(
        self, names: Sequence[str], token: str, owner: str, lifetime: timedelta
    ) -> Grant | None:
        return self._backend.acquire_first(names, token, owner, lifetime)

    async def release(self, name: str, token: str) -> Released:
        return self._backend.release(name, token)

    async def extend(self, name: str, token: str, lifetime: timedelta) -> int | None:
        return self._backend.extend(name, token, lifetime)

    async def extend_many(self, held: Sequence[tuple[str, str]], lifetime: timedelta) -> dict[str, int]:
        return self._backend.extend_many(held, lifetime)

    async def holder(self, name: str) -> Holder | None:
        return self._backend.holder(name)

    async def break_(self, name: str) -> bool:
        return self._backend.break_(name)

    async def list(self, pattern: str = "*") -> AsyncIterator[Holder]:
        for holder in self._backend.list(pattern):
            yield holder

    async def prune(self) -> int:
        return self._backend.prune()

    async def close(self) -> None:
        """Nothing to give up."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._backend!r}>"


def _holder(row: _Row, now: int) -> Holder:
    grant = row.grant
    return Holder.at(
        now, name=grant.name, owner=row.owner, fence=grant.fence, since=grant.since, until=grant.until
    )
