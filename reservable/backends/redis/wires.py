"""How the steps of a plan reach a server: here over a connection pool; `cluster` has the other way.

Neither lets the driver resend a command by itself: a release that was sent twice would find nothing, and nobody
would know that the first one did it. `LostReply` tells the plan, and the plan alone asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from inspect import Parameter, signature
from os import getpid
from typing import Any, Protocol

from redis.connection import ConnectionPool
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    InvalidResponse,
    NoScriptError,
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


class Wire(Protocol):
    """Performs steps; every failure is a `BackendError`, or a `LostReply` where the server may have done it."""

    def call(self, step: Call) -> Any: ...

    def scan(self, step: Scan) -> tuple[list[bytes], Any]: ...

    def look(self, step: Look) -> list[bytes | None]: ...

    def memory(self) -> dict[str, str]:
        """What INFO says of the server's memory."""
        ...

    def close(self) -> None: ...


class PoolWire:
    """One server, or the master that Sentinel names; each command on a connection of the pool, in bytes.

    Connections of a pool of our own are kept here between commands: giving one back and taking it again costs
    the pool a tenth of the whole round trip.
    """

    def __init__(
        self, pool: ConnectionPool, *, secrets: Collection[str], owned: bool, sentinels: Sequence[Any] = ()
    ) -> None:
        self._pool = pool
        self._sentinels = sentinels
        self._secrets = secrets
        self._owned = owned
        self._kept: list[Any] = []
        self._take = _taker(pool)

    def call(self, step: Call) -> Any:
        script, keys, args = step
        try:
            return self._ask("EVALSHA", script.sha, len(keys), *keys, *args)
        except NoScriptError:  # a new server, a failover, SCRIPT FLUSH
            pass
        return self._ask("EVAL", script.text, len(keys), *keys, *args)

    def scan(self, step: Scan) -> tuple[list[bytes], Any]:
        cursor, keys = self._ask("SCAN", step.cursor or 0, b"MATCH", step.pattern, b"COUNT", PAGE)
        return keys, int(cursor) or None

    def look(self, step: Look) -> list[bytes | None]:
        return self._ask("MGET", *step.keys)  # type: ignore[no-any-return]

    def memory(self) -> dict[str, str]:
        lines = self._ask("INFO", b"memory").decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def close(self) -> None:
        if self._owned:
            while self._kept:
                self._pool.release(self._kept.pop())
            self._pool.disconnect()
        for sentinel in self._sentinels:
            sentinel.close()

    def _ask(self, *command: Any) -> Any:
        failure = lost = None
        sound = True
        try:
            connection = self._connection()
        except TROUBLE as error:  # nothing was sent
            failure = broken(error, self._secrets)
        else:
            try:
                connection.send_command(*command)
                return connection.read_response(disable_decoding=True)
            except NoScriptError:
                raise
            except ANSWERS as error:
                # A server that was demoted, or that forgot who we are, is not asked again on this connection.
                sound = isinstance(error, ResponseError) and not isinstance(error, ReadOnlyError)
                failure = broken(error, self._secrets)
            except LOST as error:
                sound = False
                lost = broken(error, self._secrets)
            except BaseException:  # interrupted: what the server still says must not answer the next command
                sound = False
                raise
            finally:
                self._give_back(connection, sound=sound)
        if lost is not None:
            raise LostReply(lost)
        raise failure  # type: ignore[misc]  # one of the two is set here

    def _connection(self) -> Any:
        try:
            kept = self._kept.pop()
        except IndexError:
            return self._take()
        if kept.pid != getpid():  # the parent's, who goes on using it
            self._kept.clear()
        elif _is_quiet(kept):
            return kept
        else:
            self._pool.release(kept)  # closed by the server, or a notice came in: the pool knows what to do
        return self._take()

    def _give_back(self, connection: Any, *, sound: bool) -> None:
        if not sound:
            connection.disconnect()
        if sound and self._owned and not getattr(connection, "should_reconnect", bool)():
            self._kept.append(connection)
        else:
            self._pool.release(connection)


def _is_quiet(connection: Any) -> bool:
    try:
        return not connection.can_read()
    except (RedisConnectionError, RedisTimeoutError, OSError):
        return False


def _taker(pool: ConnectionPool) -> Callable[[], Any]:
    command = signature(pool.get_connection).parameters.get("command_name")
    if command is not None and command.default is Parameter.empty:  # redis-py before 5.3
        return partial(pool.get_connection, "EVALSHA")
    return pool.get_connection
