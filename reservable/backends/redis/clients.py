"""Which clients are accepted, and the pool of our own that is made after a client's.

Its connections differ in one thing: they try once. So a server that is down is reported at once, whatever
patience the client was given, and nothing is resent behind our back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redis import BlockingConnectionPool, ConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.cluster import ClusterPipeline, RedisCluster
from redis.retry import Retry
from redis.sentinel import SentinelConnectionPool

from reservable.backends.redis.cluster import ClusterWire
from reservable.backends.redis.wires import PoolWire, Wire
from reservable.errors import ConfigurationError

_OF_THE_OTHER_POOL = (
    "connection_pool",
    "himport_registry",
    "maint_notifications_pool_handler",
    "oss_cluster_maint_notifications_handler",
    "orig_host_address",
    "orig_socket_timeout",
    "orig_socket_connect_timeout",
)


def once() -> Retry:
    """The policy of a connection that is tried once."""
    return Retry(NoBackoff(), 0)


def wire_of(client: Any, *, owned: bool) -> Wire:
    """The wire over this client; `ConfigurationError` when it is not a plain, blocking redis-py client.

    The connections of a plain client are our own, unless the client is `owned` or its pool is of a class
    that we do not know how to copy: then that pool is used, with its own patience in connecting.
    """
    if isinstance(client, RedisCluster) and not isinstance(client, ClusterPipeline):
        return ClusterWire(lambda: client, secrets=secrets_of(client), owned=owned)
    if not isinstance(client, Redis) or isinstance(client, Pipeline):
        raise ConfigurationError(_refusal(client))
    pool = client.connection_pool
    if isinstance(pool, SentinelConnectionPool) and not pool.is_master:
        raise ConfigurationError("this client reads from replicas: give the one of Sentinel.master_for()")
    ours = None if owned else _copied(pool)
    return PoolWire(
        ours or pool,
        secrets=secrets_of(client),
        owned=owned or ours is not None,
        sentinels=pool.sentinel_manager.sentinels
        if owned and isinstance(pool, SentinelConnectionPool)
        else (),
    )


def _refusal(client: Any) -> str:
    kind = f"{type(client).__module__}.{type(client).__qualname__}"
    if type(client).__module__.startswith("redis.asyncio") or "async" in type(client).__name__.lower():
        return f"{kind} is an asyncio client: blocking code needs a redis.Redis"
    return (
        f"{kind} is not a redis.Redis or redis.cluster.RedisCluster; of a cache, give the client underneath"
        ' (with django-redis: get_redis_connection("default"))'
    )


def _copied(pool: Any) -> ConnectionPool | None:
    """A pool with the same settings and no retries, None for a class of pool that we do not know."""
    settings = {k: v for k, v in pool.connection_kwargs.items() if k not in _OF_THE_OTHER_POOL}
    settings |= {"retry": once(), "retry_on_error": [], "retry_on_timeout": False, "decode_responses": False}
    settings |= {"connection_class": pool.connection_class, "max_connections": pool.max_connections}
    kind: Any = type(pool)
    if kind is ConnectionPool:
        return ConnectionPool(**settings)
    if kind is BlockingConnectionPool:
        return kind(timeout=pool.timeout, queue_class=pool.queue_class, **settings)  # type: ignore[no-untyped-call]
    if kind is SentinelConnectionPool:
        settings["check_connection"] = pool.check_connection
        return kind(pool.service_name, pool.sentinel_manager, **settings)  # type: ignore[no-untyped-call]
    return None


def secrets_of(client: Any) -> frozenset[str]:
    """The passwords of a client, to keep them out of error texts."""
    return frozenset(secret for secret in _passwords(client) if secret)


def _passwords(client: Any) -> Iterator[str]:
    if isinstance(client, RedisCluster):
        settings = [client.nodes_manager.connection_kwargs]
    else:
        pool = client.connection_pool
        settings = [pool.connection_kwargs]
        if isinstance(pool, SentinelConnectionPool):
            settings.append(pool.sentinel_manager.sentinel_kwargs)
    for kwargs in settings:
        yield str(kwargs.get("password") or "")
        yield str(kwargs.get("ssl_password") or "")
        yield str(getattr(kwargs.get("credential_provider"), "password", None) or "")
