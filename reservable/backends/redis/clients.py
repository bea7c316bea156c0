"""Which clients are accepted, and the wire over each: in its own colour, or in the other one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any, NamedTuple

import redis
import redis.asyncio
from redis.asyncio.client import Pipeline as AsyncPipeline
from redis.client import Pipeline

from reservable.backends.redis.async_cluster import AsyncClusterWire
from reservable.backends.redis.async_wires import AsyncPoolWire, AsyncWire
from reservable.backends.redis.cluster import ClusterWire
from reservable.backends.redis.pools import AWAITED, BLOCKING, Colour, Nodes, copied
from reservable.backends.redis.wires import PoolWire, Wire
from reservable.errors import ConfigurationError

_SENTINEL_POOLS = (BLOCKING.sentinel.SentinelConnectionPool, AWAITED.sentinel.SentinelConnectionPool)


class Place(NamedTuple):
    """Where reservations live, for code of either colour: a pool to copy, or the nodes of a cluster."""

    origin: Any
    secrets: Collection[str]
    """The passwords, to keep them out of error texts."""

    def __repr__(self) -> str:
        return f"Place({self.origin!r})"  # a pool leaves its password out


def place_of(client: Any, colour: Colour) -> Place:
    """Where this client connects to; `ConfigurationError` when it is not a plain redis-py client of the colour."""
    blocking = colour is BLOCKING
    kinds = (
        (redis.Redis, redis.RedisCluster) if blocking else (redis.asyncio.Redis, redis.asyncio.RedisCluster)
    )
    pipelines = (Pipeline if blocking else AsyncPipeline, colour.cluster.ClusterPipeline)
    if not isinstance(client, kinds) or isinstance(client, pipelines):
        raise ConfigurationError(_refusal(client, colour))
    secrets = frozenset(secret for secret in _passwords(client) if secret)
    if hasattr(client, "nodes_manager"):
        return Place(Nodes.of(client), secrets)
    pool: Any = getattr(client, "connection_pool")  # noqa: B009 - the types of the two colours differ
    if isinstance(pool, _SENTINEL_POOLS) and not pool.is_master:
        raise ConfigurationError("this client reads from replicas: give the one of Sentinel.master_for()")
    return Place(pool, secrets)


def beside(other: Any, prefix: str, colour: Colour) -> tuple[Place, str]:
    """The place and the prefix of a backend, or the place of a client of the colour and the prefix that is given."""
    place = getattr(other, "place", None)
    return (place, other.prefix) if isinstance(place, Place) else (place_of(other, colour), prefix)


def wire_of(client: Any, *, owned: bool) -> Wire:
    """The wire over a blocking client; `ConfigurationError` for any other.

    The connections of a plain client are our own, unless the client is `owned` or its pool is of a class
    that we do not know how to copy: then that pool is used, with its own patience in connecting.
    """
    place = place_of(client, BLOCKING)
    if isinstance(place.origin, Nodes):
        return ClusterWire(lambda: client, place, owned=owned)
    ours = None if owned else copied(place.origin, BLOCKING)
    return PoolWire(
        ours or place.origin,
        place,
        owned=owned or ours is not None,
        sentinels=_sentinels(place.origin) if owned else (),
    )


def wire_at(place: Place) -> Wire:
    """A blocking wire of our own to the place of an asyncio client."""
    if isinstance(place.origin, Nodes):
        return ClusterWire(partial(place.origin.make, BLOCKING), place, owned=True)
    pool = _copied(place.origin, BLOCKING)
    return PoolWire(pool, place, owned=True, sentinels=_sentinels(pool))


def async_wire_of(client: Any) -> AsyncWire:
    """An asyncio wire of our own to the place of an asyncio client; `ConfigurationError` for any other."""
    return async_wire_at(place_of(client, AWAITED))


def async_wire_at(place: Place) -> AsyncWire:
    """An asyncio wire of our own to this place."""
    if isinstance(place.origin, Nodes):
        return AsyncClusterWire(partial(place.origin.make, AWAITED), place)
    make = partial(_copied, place.origin, AWAITED)
    make()  # refuses what cannot be copied, now and not at the first use
    return AsyncPoolWire(make, place)


def _copied(pool: Any, to: Colour) -> Any:
    """A pool of our own. Of a class that we do not know, the given one, if that is of the right colour."""
    ours = copied(pool, to)
    if ours is None and not isinstance(pool, to.connection.ConnectionPool):
        raise ConfigurationError(
            f"a pool of class {type(pool).__module__}.{type(pool).__qualname__} has no twin that we know: blocking "
            "and asyncio code each need a client of their own here"
        )
    return pool if ours is None else ours


def _sentinels(pool: Any) -> Any:
    return pool.sentinel_manager.sentinels if isinstance(pool, _SENTINEL_POOLS) else ()


def _refusal(client: Any, colour: Colour) -> str:
    kind = f"{type(client).__module__}.{type(client).__qualname__}"
    if colour is AWAITED:
        return f"{kind} is not a redis.asyncio.Redis or redis.asyncio.RedisCluster"
    if type(client).__module__.startswith("redis.asyncio") or "async" in type(client).__name__.lower():
        return f"{kind} is an asyncio client: blocking code needs a redis.Redis"
    return (
        f"{kind} is not a redis.Redis or redis.cluster.RedisCluster; of a cache, give the client underneath"
        ' (with django-redis: get_redis_connection("default"))'
    )


def _passwords(client: Any) -> Iterator[str]:
    if hasattr(client, "nodes_manager"):
        settings = [client.nodes_manager.connection_kwargs]
    else:
        pool = client.connection_pool
        settings = [pool.connection_kwargs]
        if isinstance(pool, _SENTINEL_POOLS):
            settings.append(pool.sentinel_manager.sentinel_kwargs)
    for kwargs in settings:
        yield str(kwargs.get("password") or "")
        yield str(kwargs.get("ssl_password") or "")
        yield str(getattr(kwargs.get("credential_provider"), "password", None) or "")
