"""From a URL to a backend. No connection is made here; no text of the URL is in any error, for it has the password.

    redis://[[user]:password@]host[:port][/db]          rediss:// the same over TLS
    unix://[user:password@]/path/to/socket[?db=0]
    redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/service[/db]
    redis+cluster://[[user]:password@]host[:port][,host[:port]...][/0]

The query string takes redis-py's connection settings, such as `socket_timeout` and `socket_connect_timeout`
(seconds, 5 each if not said), `max_connections`, `ssl_ca_certs`; with Sentinel also `sentinel_username` and
`sentinel_password`. `rediss+sentinel://` and `rediss+cluster://` use TLS.
"""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

import redis.asyncio
from redis import ConnectionPool, Redis
from redis.connection import Connection, SSLConnection, parse_url
from redis.exceptions import RedisError
from redis.sentinel import Sentinel

from reservable.backends.redis.asynchronous import AsyncRedisBackend
from reservable.backends.redis.backend import RedisBackend
from reservable.backends.redis.clients import Place
from reservable.backends.redis.cluster import ClusterWire
from reservable.backends.redis.pools import BLOCKING, Nodes, once
from reservable.errors import ConfigurationError

DEFAULTS = {
    "socket_timeout": 5.0,
    "socket_connect_timeout": 5.0,
    "socket_keepalive": True,
    "max_connections": 2**31,
}

FORMS = {
    "redis": "redis://[[user]:password@]host[:port][/db]",
    "unix": "unix://[user:password@]/path/to/socket[?db=0]",
    "redis+sentinel": "redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/service[/db]",
    "redis+cluster": "redis+cluster://[[user]:password@]host[:port][,host[:port]...][/0]",
}


def from_url(url: str, prefix: str = "") -> RedisBackend:
    """The backend for the URL; `ConfigurationError` when it cannot be read."""
    scheme = url.partition("://")[0]
    makers = {
        "redis": _plain,
        "rediss": _plain,
        "unix": _plain,
        "redis+sentinel": _sentinel,
        "rediss+sentinel": _sentinel,
        "redis+cluster": _cluster,
        "rediss+cluster": _cluster,
    }
    if scheme not in makers:
        raise ConfigurationError(
            "a Redis URL starts with one of: " + ", ".join(f"{known}://" for known in makers)
        )
    try:
        return makers[scheme](url, prefix)
    except ConfigurationError:
        raise
    except (ValueError, TypeError, KeyError, OSError, RedisError):
        pass  # what it says repeats parts of the URL, and so would the context of an error raised right here
    form = FORMS[scheme.replace("rediss", "redis")]
    raise ConfigurationError(
        f"the {scheme}:// URL cannot be read: its form is {form}, with / @ : # ? and % in user or password percent-encoded"
    )


def over_client(client: Any, prefix: str) -> RedisBackend | AsyncRedisBackend:
    """The backend in the colour of the client; `ConfigurationError` for a client of another kind."""
    if isinstance(client, redis.asyncio.Redis | redis.asyncio.RedisCluster):
        return AsyncRedisBackend(client, prefix)
    return RedisBackend(client, prefix)


def async_from_url(url: str, prefix: str = "") -> AsyncRedisBackend:
    """The asyncio backend for the URL; `ConfigurationError` when it cannot be read."""
    return AsyncRedisBackend.beside(from_url(url, prefix))


def _plain(url: str, prefix: str) -> RedisBackend:
    settings: dict[str, Any] = DEFAULTS | {"retry": once()} | parse_url(url)  # type: ignore[no-untyped-call]
    path = urlsplit(url).path.strip("/")
    if settings.get("path"):
        del settings["socket_keepalive"]
        del settings["socket_connect_timeout"]
    elif path and not path.isdigit():
        raise ValueError
    pool = ConnectionPool(**settings)
    pool.connection_class(**pool.connection_kwargs)  # refuses unknown settings, now and not at the first use
    return RedisBackend(Redis(connection_pool=pool), prefix, owns_client=True)


def _sentinel(url: str, prefix: str) -> RedisBackend:
    hosts, settings, (service, *db) = _several(url, port=26379)
    if not service or len(db) > 1:
        raise ValueError
    if db:
        settings["db"] = int(db[0])
    secure = settings.pop("connection_class", None) is SSLConnection
    own = {k: settings.pop(f"sentinel_{k}", None) for k in ("username", "password")}
    timeouts = {k: v for k, v in settings.items() if k.startswith(("socket_", "ssl_"))}
    sentinel = Sentinel(  # type: ignore[no-untyped-call]
        hosts, sentinel_kwargs={**timeouts, **own, "retry": once(), "ssl": secure}
    )
    master = sentinel.master_for(service, ssl=secure, retry=once(), **settings)  # type: ignore[no-untyped-call]
    master.connection_pool.connection_class(**master.connection_pool.connection_kwargs)  # as above
    return RedisBackend(master, prefix, owns_client=True)


def _cluster(url: str, prefix: str) -> RedisBackend:
    hosts, settings, path = _several(url, port=6379)
    if path not in (["0"], [""]) or settings.pop("db", 0) != 0:
        raise ConfigurationError("a Redis cluster has database 0 only")
    secure = settings.pop("connection_class", None) is SSLConnection
    ConnectionPool(
        connection_class=SSLConnection if secure else Connection, **settings
    ).make_connection()  # as above

    nodes = Nodes(hosts, settings | {"ssl": secure})
    secrets = {settings.get("password"), settings.get("ssl_password")}
    place = Place(nodes, {s for s in secrets if s})
    return RedisBackend.over(ClusterWire(partial(nodes.make, BLOCKING), place, owned=True), prefix)


def _several(url: str, *, port: int) -> tuple[list[tuple[str, int]], dict[str, Any], list[str]]:
    """The hosts of a URL with several, its settings, and its path in parts."""
    parts = urlsplit(url)
    credentials, _, hosts = parts.netloc.rpartition("@")
    nodes = [_host(host, port) for host in hosts.split(",")]
    # The rest is read as redis-py reads the URL of a single host.
    single = f"{parts.scheme.partition('+')[0]}://{credentials}@host?{parts.query}"
    settings = parse_url(single)  # type: ignore[no-untyped-call]
    del settings["host"]
    return nodes, DEFAULTS | settings, unquote(parts.path).removeprefix("/").split("/")


def _host(text: str, port: int) -> tuple[str, int]:
    one = urlsplit(f"//{text}")
    if not one.hostname:
        raise ValueError
    return one.hostname, one.port or port
