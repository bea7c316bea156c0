"""The blocking backend for Redis."""

from __future__ import annotations

from time import sleep
from typing import Any

from reservable.backends.base import Capabilities, PlannedBackend
from reservable.backends.redis.clients import wire_of
from reservable.backends.redis.cluster import ClusterWire
from reservable.backends.redis.steps import Call, Look, Scan
from reservable.backends.redis.verbs import RedisVerbs
from reservable.backends.redis.wires import Wire
from reservable.names import check_prefix
from reservable.plans import Pause


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

    def _start(self, wire: Wire, prefix: str) -> None:
        check_prefix(prefix)
        verbs = RedisVerbs(prefix, cluster=isinstance(wire, ClusterWire))
        super().__init__(
            verbs, prefix=prefix, capabilities=Capabilities(shared=True, durable=False, joinable=False)
        )
        self._wire = wire

    def perform(self, step: Any) -> Any:
        kind = type(step)
        if kind is Call:
            return self._wire.call(step)
        if kind is Pause:
            return sleep(step.seconds)
        if kind is Scan:
            return self._wire.scan(step)
        if kind is Look:
            return self._wire.look(step)
        raise TypeError(f"not a step of Redis: {kind.__qualname__}")

    def eviction_policy(self) -> str | None:
        """The policy by which this server may evict reservations when its memory is full, None when it never does.

        Raises `BackendError` also where the server will not tell.
        """
        told = self._wire.memory()
        policy = told.get("maxmemory_policy", "noeviction")
        return None if policy == "noeviction" or told.get("maxmemory") == "0" else policy

    def close(self) -> None:
        """Close the connections that were opened here; the given client stays open."""
        self._wire.close()

    def __repr__(self) -> str:
        return f"RedisBackend(prefix={self.prefix!r})"
