"""The asyncio backend for Redis."""

from __future__ import annotations

from asyncio import sleep
from typing import Any

from reservable.backends.asynchronous import AsyncPlannedBackend
from reservable.backends.redis.async_wires import AsyncWire
from reservable.backends.redis.backend import CAPABILITIES, RedisBackend
from reservable.backends.redis.clients import Place, async_wire_at, async_wire_of, beside
from reservable.backends.redis.commands import evicting
from reservable.backends.redis.pools import BLOCKING, Nodes
from reservable.backends.redis.steps import Call, Look, Scan
from reservable.backends.redis.verbs import RedisVerbs
from reservable.backends.redis.watches import Source
from reservable.backends.watching import AsyncWatch
from reservable.names import check_prefix
from reservable.plans import Pause


class AsyncRedisBackend(AsyncPlannedBackend[RedisVerbs]):
    """`RedisBackend` for asyncio: the same reservations, plans and scripts.

    `client` is a client of redis.asyncio: `Redis`, what its `Sentinel.master_for` gives, or `RedisCluster`. Only
    its settings are used. The connections are our own, in each event loop those of that loop, and closed with it,
    so one backend serves several loops, one after the other or in threads.

    Raises `ConfigurationError` for a client of another kind or a prefix that cannot be.
    """

    def __init__(self, client: Any, prefix: str = "") -> None:
        self._start(async_wire_of(client), prefix)

    @classmethod
    def beside(cls, other: Any, prefix: str = "") -> AsyncRedisBackend:
        """The asyncio twin of a `RedisBackend` (it has its prefix), or of a blocking redis-py client.

        It connects to the same server with the same settings, and never uses the other's connections. Raises
        `ConfigurationError` for settings that asyncio has no counterpart of.
        """
        place, prefix = beside(other, prefix, BLOCKING)
        backend = cls.__new__(cls)
        backend._start(async_wire_at(place), prefix)
        return backend

    def _start(self, wire: AsyncWire, prefix: str) -> None:
        check_prefix(prefix)
        verbs = RedisVerbs(prefix, cluster=isinstance(wire.place.origin, Nodes))
        super().__init__(verbs, prefix=prefix, capabilities=CAPABILITIES)
        self._wire = wire
        self._listeners = Source(wire.listener)

    @property
    def place(self) -> Place:
        """Where the reservations live, for a backend of the other colour."""
        return self._wire.place

    async def _perform(self, step: Any) -> Any:
        kind = type(step)
        if kind is Call:
            return await self._wire.call(step)
        if kind is Pause:
            return await sleep(step.seconds)
        if kind is Scan:
            return await self._wire.scan(step)
        if kind is Look:
            return await self._wire.look(step)
        raise TypeError(f"not a step of Redis: {kind.__qualname__}")

    def twin(self) -> RedisBackend:
        """The backend on the same store for blocking code."""
        return RedisBackend.beside(self)

    def watch(self, name: str) -> AsyncWatch:
        """Wait for the name: `async with backend.watch(name) as watch: await watch.pause(seconds)`.

        A pause ends when the name was released or taken over, and after `seconds` at most.
        """
        return self._listeners.async_watch(self._verbs.key(name))

    async def eviction_policy(self) -> str | None:
        """The policy by which this server may evict reservations when its memory is full, None when it never does.

        Raises `BackendError` also where the server will not tell.
        """
        return evicting(await self._wire.info())

    async def close(self) -> None:
        """Close the connections of this event loop now, and those of other loops as soon as they come to it."""
        await self._wire.close()

    def __repr__(self) -> str:
        return f"AsyncRedisBackend(prefix={self.prefix!r})"
