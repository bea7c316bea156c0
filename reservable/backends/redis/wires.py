"""How the steps of a plan reach a server: here over a connection pool; `cluster` has the other way.

Neither lets the driver resend a command by itself: a release that was sent twice would find nothing, and nobody
would know that the first one did it. `LostReply` tells the plan, and the plan alone asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import Parameter, signature
from os import getpid
from typing import TYPE_CHECKING, Any, Protocol

from redis.connection import BlockingConnectionPool, ConnectionPool
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError
from redis.exceptions import TimeoutError as RedisTimeoutError

from reservable.backends.redis.commands import (
    ANSWERS,
    INFO,
    LOST,
    TROUBLE,
    Command,
    by_digest,
    by_text,
    judged,
    look,
    scan,
    scanned,
    told,
)
from reservable.backends.redis.failures import broken
from reservable.backends.redis.pools import listening
from reservable.backends.redis.steps import Call, Look, Scan

if TYPE_CHECKING:
    from reservable.backends.redis.clients import Place


class Wire(Protocol):
    """Performs steps; every failure is a `BackendError`, or a `LostReply` where the server may have done it."""

    @property
    def place(self) -> Place:
        """Where it leads, for a wire of the other colour."""
        ...

    def call(self, step: Call) -> Any: ...

    def scan(self, step: Scan) -> tuple[list[bytes], Any]: ...

    def look(self, step: Look) -> list[bytes | None]: ...

    def info(self) -> dict[str, str]:
        """What the server says of itself, by name."""
        ...

    def listener(self, key: bytes) -> Any:
        """An unconnected connection to the server that has the key, on which it may speak first.

        Raises what it will when that server is not known.
        """
        ...

    def close(self) -> None: ...


class PoolWire:
    """One server, or the master that Sentinel names; each command on a connection of the pool, in bytes.

    Connections of a pool of our own are kept here between commands: giving one back and taking it again costs
    the pool a tenth of the whole round trip. Not those of a blocking pool, whose waiters wait for it alone.
    """

    def __init__(
        self, pool: ConnectionPool, place: Place, *, owned: bool, sentinels: Sequence[Any] = ()
    ) -> None:
        self.place = place
        self._pool = pool
        self._sentinels = sentinels
        self._secrets = place.secrets
        self._owned = owned
        self._keeps = owned and not isinstance(pool, BlockingConnectionPool)
        self._kept: list[Any] = []
        self._take = _taker(pool)

    def call(self, step: Call) -> Any:
        try:
            return self._ask(by_digest(step))
        except NoScriptError:
            pass
        return self._ask(by_text(step))

    def scan(self, step: Scan) -> tuple[list[bytes], Any]:
        return scanned(self._ask(scan(step)))

    def look(self, step: Look) -> list[bytes | None]:
        return self._ask(look(step))  # type: ignore[no-any-return]

    def info(self) -> dict[str, str]:
        return told(self._ask(INFO))

    def listener(self, key: bytes) -> Any:  # noqa: ARG002 - one server has all keys
        return listening(self._pool)

    def close(self) -> None:
        if self._owned:
            while self._kept:
                self._pool.release(self._kept.pop())
            self._pool.disconnect()
        for sentinel in self._sentinels:
            sentinel.close()

    def _ask(self, command: Command) -> Any:
        sound = False
        try:
            connection = self._connection()
        except TROUBLE as error:  # nothing was sent
            failure: Exception = broken(error, self._secrets)
        else:
            try:
                connection.send_command(*command)
                answer = connection.read_response(disable_decoding=True)
                sound = True
                return answer
            except NoScriptError:
                sound = True
                raise
            except (*ANSWERS, *LOST) as error:
                failure, sound = judged(error, self._secrets)
            finally:
                # Interrupted in the middle, it is closed: what the server still says must not answer the next command.
                self._give_back(connection, sound=sound)
        raise failure

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
        if sound and self._keeps and not getattr(connection, "should_reconnect", bool)():
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
