"""Pools, Sentinels and clusters of our own that are made after given ones, in the same colour or in the other.

Their connections differ in one thing: they try once. So a server that is down is reported at once, whatever
patience the client was given, and nothing is resent behind our back.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import Parameter, signature
from types import ModuleType
from typing import Any, NamedTuple

import redis.asyncio.cluster
import redis.asyncio.connection
import redis.asyncio.retry
import redis.asyncio.sentinel
import redis.cluster
import redis.connection
import redis.retry
import redis.sentinel
from redis.backoff import NoBackoff

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
_OF_ITS_COLOUR = ("parser_class", "command_packer", "event_dispatcher", "retry", "retry_on_error")


class Colour(NamedTuple):
    """Where redis-py has its classes for blocking code, or for asyncio: they have the same names."""

    connection: ModuleType
    sentinel: ModuleType
    cluster: ModuleType
    retry: ModuleType

    def once(self) -> Any:
        """The policy of a connection that is tried once."""
        return self.retry.Retry(NoBackoff(), 0)


BLOCKING = Colour(redis.connection, redis.sentinel, redis.cluster, redis.retry)
AWAITED = Colour(redis.asyncio.connection, redis.asyncio.sentinel, redis.asyncio.cluster, redis.asyncio.retry)


def once() -> Any:
    """The policy of a blocking connection that is tried once."""
    return BLOCKING.once()


def copied(pool: Any, to: Colour) -> Any:
    """An unused pool with the same settings and no retries; None for a class of pool that we do not know.

    Raises `ConfigurationError` for settings that have no counterpart in the other colour.
    """
    for own in (BLOCKING, AWAITED):
        known = (
            own.connection.ConnectionPool,
            own.connection.BlockingConnectionPool,
            own.sentinel.SentinelConnectionPool,
        )
        if type(pool) in known:
            settings = settings_of(pool, own, to)
            settings["max_connections"] = pool.max_connections
            return (_plain, _blocking, _managed)[known.index(type(pool))](pool, settings, own, to)
    return None


def settings_of(pool: Any, own: Colour, to: Colour) -> dict[str, Any]:
    """The settings of a pool's connections, for one that tries once and leaves replies as they are."""
    settings = {k: v for k, v in pool.connection_kwargs.items() if k not in _OF_THE_OTHER_POOL}
    if own is not to:
        if settings.pop("redis_connect_func", None) is not None:
            raise ConfigurationError("a client with redis_connect_func has no twin: give one of each colour")
        settings = {k: v for k, v in settings.items() if k not in _OF_ITS_COLOUR}
    return settings | {
        "retry": to.once(),
        "retry_on_error": [],
        "retry_on_timeout": False,
        "decode_responses": False,
    }


def _plain(pool: Any, settings: dict[str, Any], own: Colour, to: Colour) -> Any:
    return to.connection.ConnectionPool(**_with_class(pool.connection_class, settings, own, to))


def _blocking(pool: Any, settings: dict[str, Any], own: Colour, to: Colour) -> Any:
    settings = _with_class(pool.connection_class, settings, own, to)
    if own is to is BLOCKING:
        settings["queue_class"] = pool.queue_class
    return to.connection.BlockingConnectionPool(timeout=pool.timeout, **settings)


def _managed(pool: Any, settings: dict[str, Any], own: Colour, to: Colour) -> Any:
    sentinels = pool.sentinel_manager
    if own is to is AWAITED or own is not to:  # asyncio's belong to one event loop
        sentinels = _sentinels(sentinels, own, to)
    settings = _with_class(pool.connection_class, settings, own, to)
    return to.sentinel.SentinelConnectionPool(
        pool.service_name, sentinels, check_connection=pool.check_connection, **settings
    )


def _sentinels(given: Any, own: Colour, to: Colour) -> Any:
    hosts = [
        (at["host"], at["port"])
        for at in (sentinel.connection_pool.connection_kwargs for sentinel in given.sentinels)
    ]
    own_settings = {k: v for k, v in given.sentinel_kwargs.items() if own is to or k not in _OF_ITS_COLOUR}
    return to.sentinel.Sentinel(
        hosts,
        given.min_other_sentinels,
        sentinel_kwargs=own_settings | {"retry": to.once()},
        force_master_ip=getattr(given, "_force_master_ip", None),
    )


def _with_class(kind: type, settings: dict[str, Any], own: Colour, to: Colour) -> dict[str, Any]:
    """The settings with the class of connection, and without what that class would not accept."""
    if own is not to:
        kind = _twin(kind, own, to)
        taken = _accepted(kind) | {"max_connections"}
        settings = {k: v for k, v in settings.items() if k in taken}
    return settings | {"connection_class": kind}


def _twin(kind: type, own: Colour, to: Colour) -> type:
    for module, twins in zip(own[:2], to[:2], strict=True):
        if kind.__module__ == module.__name__:
            return getattr(twins, kind.__name__)  # type: ignore[no-any-return]
    if kind.__module__.startswith("fakeredis"):
        from fakeredis import FakeRedis
        from fakeredis.aioredis import FakeRedis as AsyncFakeRedis

        fake = FakeRedis if to is BLOCKING else AsyncFakeRedis
        return fake().connection_pool.connection_class
    raise ConfigurationError(
        f"connections of class {kind.__module__}.{kind.__qualname__} have no twin that we know: blocking and "
        "asyncio code each need a client of their own here"
    )


def _accepted(kind: type) -> set[str]:
    return {
        name
        for cls in kind.__mro__
        if "__init__" in vars(cls)
        for name, parameter in signature(vars(cls)["__init__"]).parameters.items()
        if parameter.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD) and name != "self"
    }


def listening(pool: Any) -> Any:
    """An unconnected connection beside the pool's, on which the server may speak first (RESP3).

    Raises what it will when nobody has asked Sentinel for the master yet.
    """
    own = AWAITED if isinstance(pool, AWAITED.connection.ConnectionPool) else BLOCKING
    settings = settings_of(pool, own, own) | {"protocol": 3}
    settings.pop("maint_notifications_config", None)
    kind = pool.connection_class
    if isinstance(pool, own.sentinel.SentinelConnectionPool):
        settings["host"], settings["port"] = pool.master_address
        kind = (
            own.connection.SSLConnection
            if issubclass(kind, own.connection.SSLConnection)
            else own.connection.Connection
        )
    return kind(**settings)


class Nodes(NamedTuple):
    """A cluster by the nodes that are asked first; `make` makes an unused client of either colour."""

    hosts: Sequence[tuple[str, int]]
    settings: dict[str, Any]

    def __repr__(self) -> str:
        return f"Nodes({self.hosts!r})"  # the settings have the password

    @classmethod
    def of(cls, client: Any) -> Nodes:
        """What a given client is made of."""
        manager = client.nodes_manager
        settings = {k: v for k, v in manager.connection_kwargs.items() if k not in _OF_THE_OTHER_POOL}
        secure = getattr(settings.pop("connection_class", None), "__name__", "") == "SSLConnection"
        full = getattr(manager, "require_full_coverage", getattr(manager, "_require_full_coverage", False))
        settings |= {"ssl": settings.get("ssl", False) or secure, "require_full_coverage": full}
        settings |= {"address_remap": manager.address_remap, "decode_responses": False}
        hosts = [(node.host, node.port) for node in manager.startup_nodes.values()]
        return cls(hosts, {k: v for k, v in settings.items() if k not in _OF_ITS_COLOUR})

    def make(self, colour: Colour) -> Any:
        taken = _accepted(colour.cluster.RedisCluster)
        if colour is BLOCKING:  # it takes the settings of a connection as they are
            taken |= set(redis.cluster.REDIS_ALLOWED_KEYS)
        nodes = [colour.cluster.ClusterNode(host, port) for host, port in self.hosts]
        settings = {k: v for k, v in self.settings.items() if k in taken}
        return colour.cluster.RedisCluster(startup_nodes=nodes, retry=colour.once(), **settings)
