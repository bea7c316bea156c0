"""The commands of each step, what their answers mean, and what an error of the driver means: for both colours."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    InvalidResponse,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from reservable.backends.redis.failures import broken
from reservable.backends.redis.steps import Call, Look, Scan
from reservable.retrying import LostReply

ANSWERS = (ResponseError, AuthenticationError, AuthorizationError, BusyLoadingError)
"""Errors that the server sent as its answer, so that it is known that nothing was done."""
LOST = (RedisConnectionError, RedisTimeoutError, InvalidResponse, OSError)
TROUBLE = (RedisError, RedisClusterException, OSError, UnicodeError)
PAGE = 1000

Command = tuple[Any, ...]


def by_digest(step: Call) -> Command:
    """Run the script that the server should know; `NoScriptError`: a new server, a failover, SCRIPT FLUSH."""
    script, keys, args = step
    return ("EVALSHA", script.sha, len(keys), *keys, *args)


def by_text(step: Call) -> Command:
    """Run the script, and have the server keep it."""
    script, keys, args = step
    return ("EVAL", script.text, len(keys), *keys, *args)


def scan(step: Scan) -> Command:
    """Read a page of keys."""
    return ("SCAN", step.cursor or 0, b"MATCH", step.pattern, b"COUNT", PAGE)


def scanned(answer: Any) -> tuple[list[bytes], Any]:
    """The keys of a page, and the cursor of the next one, None when that was all."""
    cursor, keys = answer
    return keys, int(cursor) or None


def look(step: Look) -> Command:
    """Read the values of keys that one server has."""
    return ("MGET", *step.keys)


INFO: Command = ("INFO",)


def told(answer: bytes) -> dict[str, str]:
    """What INFO says, by name."""
    lines = answer.decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def evicting(info: dict[str, str]) -> str | None:
    """The policy by which a server evicts when its memory is full, None when it never does."""
    policy = info.get("maxmemory_policy", "noeviction")
    return None if policy == "noeviction" or info.get("maxmemory") == "0" else policy


def version(info: dict[str, str]) -> str:
    """The server by name and version, as "Redis 7.0.15"; its descendants have both versions."""
    name = info.get("server_name", "redis")
    return f"{name.title()} {info.get(f'{name}_version', info.get('redis_version', '?'))}"


def judged(error: Exception, secrets: Collection[str]) -> tuple[Exception, bool]:
    """What to raise for an error that came after a command was sent, and whether its connection is still good.

    Raise it outside of the `except`, or Python chains what the driver said, password and all.
    """
    if isinstance(error, ANSWERS):
        # A server that was demoted, or that forgot who we are, is not asked again on this connection.
        sound = isinstance(error, ResponseError) and not isinstance(error, ReadOnlyError)
        return broken(error, secrets), sound
    return LostReply(broken(error, secrets)), False
