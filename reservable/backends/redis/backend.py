"""The blocking backend for Redis."""

from __future__ import annotations

import time
from typing import Any

from reservable.backends.base import Capabilities, PlannedBackend
from reservable.backends.redis.clients import Place, beside, wire_at, wire_of
from reservable.backends.redis.commands import evicting, version
from reservable.backends.redis.pools import AWAITED, Nodes
from reservable.backends.redis.steps import Call, Look, Scan
from reservable.backends.redis.verbs import RedisVerbs
from reservable.backends.redis.watches import Source
from reservable.backends.redis.wires import Wire
from reservable.backends.watching import Watch
from reservable.names import check_prefix
from reservable.plans import Pause

CAPABILITIES = Capabilities(shared=True, durable=False, joinable=False, tells=True)


class RedisBackend(PlannedBackend[RedisVerbs]):
    """Reservations in Redis 6 or later, one key each; Sentinel and Cluster too.

    `client` is a redis-py client that works with plain Redis values: `redis.Redis`, what `Sentinel.master_for`
    gives, or `redis.cluster.RedisCluster`. Its settings are used, on connections of our own that do not retry;
    `owns_client` says that the client was made for this backend, to be used and closed as it is.

    Not durable: a failover may lose what was granted in the last moments (`extend` then says so), and `FLUSHDB`
    or an evicting `maxmemory-policy` ends reservations early. Give them a database without either.

    Raises `ConfigurationError` for a client of another kind or a prefix that cannot be.
    """

    def __init__(self, client: Any, prefix: str = "", *, owns_client: bool = False) -> None:
        self._start(wire_of(client, owned=owns_client), prefix)

    @classmethod
    def over(cls, wire: Wire, prefix: str) -> RedisBackend:
        """The backend on a wire of its own, as `from_url` makes it."""
        backend = cls.__new__(cls)
        backend._start(wire, prefix)
        return backend

    @classmethod
    def beside(cls, other: Any, prefix: str = "") -> RedisBackend:
        """The blocking twin of an `AsyncRedisBackend` (it has its prefix), or of a client of redis.asyncio.

        It connects to the same server with the same settings, and never uses the other's connections. Raises
        `ConfigurationError` for settings that blocking code has no counterpart of.
        """
        place, prefix = beside(other, prefix, AWAITED)
        return cls.over(wire_at(place), prefix)

    def _start(self, wire: Wire, prefix: str) -> None:
        check_prefix(prefix)
        verbs = RedisVerbs(prefix, cluster=isinstance(wire.place.origin, Nodes))
        super().__init__(verbs, prefix=prefix, capabilities=CAPABILITIES)
        self._wire = wire
        self._listeners = Source(wire.listener)

    @property
    def place(self) -> Place:
        """Where the reservations live, for a backend of the other colour."""
        return self._wire.place

    def twin(self) -> Any:
        """The backend on the same store for asyncio."""
        from reservable.backends.redis.asynchronous import AsyncRedisBackend

        return AsyncRedisBackend.beside(self)

    def perform(self, step: Any) -> Any:
        kind = type(step)
        if kind is Call:
            return self._wire.call(step)
        if kind is Pause:
            return time.sleep(step.seconds)  # looked up late, for gevent may have replaced it
        if kind is Scan:
            return self._wire.scan(step)
        if kind is Look:
            return self._wire.look(step)
        raise TypeError(f"not a step of Redis: {kind.__qualname__}")

    def watch(self, name: str) -> Watch:
        """Wait for the name: `with backend.watch(name) as watch: watch.pause(seconds)`.

        A pause ends when the name was released or taken over, and after `seconds` at most.
        """
        return self._listeners.watch(self._verbs.key(name))

    def eviction_policy(self) -> str | None:
        """The policy by which this server may evict reservations when its memory is full, None when it never does.

        Raises `BackendError` also where the server will not tell.
        """
        return evicting(self._wire.info())

    def server_version(self) -> str:
        """The server and its version, as "Redis 7.0.15". Raises `BackendError` also where the server will not tell."""
        return version(self._wire.info())

    def close(self) -> None:
        """Close the connections that were opened here; the given client stays open."""
        self._wire.close()

    def __repr__(self) -> str:
        return f"RedisBackend(prefix={self.prefix!r})"
