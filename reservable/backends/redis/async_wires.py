"""How the steps of a plan reach a server from asyncio: the wire of `wires.PoolWire`, awaited."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MaxConnectionsError, NoScriptError
from redis.exceptions import TimeoutError as RedisTimeoutError

from reservable.backends.loops import PerLoop, bury
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
from reservable.backends.redis.pools import AWAITED, listening
from reservable.backends.redis.steps import Call, Look, Scan

if TYPE_CHECKING:
    from reservable.backends.redis.clients import Place


class AsyncWire(Protocol):
    """`wires.Wire`, awaited."""

    @property
    def place(self) -> Place: ...

    async def call(self, step: Call) -> Any: ...

    async def scan(self, step: Scan) -> tuple[list[bytes], Any]: ...

    async def look(self, step: Look) -> list[bytes | None]: ...

    async def info(self) -> dict[str, str]: ...

    def listener(self, key: bytes) -> Any:
        """An unconnected connection to the server that has the key, on which it may speak first."""
        ...

    async def close(self) -> None: ...


class AsyncPoolWire:
    """One server, or the master that Sentinel names; each command on a connection of the running loop, in bytes."""

    def __init__(self, make_pool: Callable[[], Any], place: Place) -> None:
        self.place = place
        self._secrets = place.secrets
        self._loops = PerLoop(lambda: Connections(make_pool()))

    async def call(self, step: Call) -> Any:
        try:
            return await self._ask(by_digest(step))
        except NoScriptError:
            pass
        return await self._ask(by_text(step))

    async def scan(self, step: Scan) -> tuple[list[bytes], Any]:
        return scanned(await self._ask(scan(step)))

    async def look(self, step: Look) -> list[bytes | None]:
        return await self._ask(look(step))  # type: ignore[no-any-return]

    async def info(self) -> dict[str, str]:
        return told(await self._ask(INFO))

    def listener(self, key: bytes) -> Any:  # noqa: ARG002 - one server has all keys
        return listening(self._loops.get().pool)

    async def close(self) -> None:
        await self._loops.close()

    async def _ask(self, command: Command) -> Any:
        connections = self._loops.get()
        sound = False
        try:
            connection = await connections.take()
        except TROUBLE as error:  # nothing was sent
            failure: Exception = broken(error, self._secrets)
        else:
            try:
                async with asyncio.timeout(connections.limit):
                    await connection.send_command(*command)
                    answer = await connection.read_response(disable_decoding=True)
                sound = True
                return answer
            except TimeoutError:
                failure, sound = judged(RedisTimeoutError("Timeout waiting for an answer"), self._secrets)
            except NoScriptError:
                sound = True
                raise
            except (*ANSWERS, *LOST) as error:
                failure, sound = judged(error, self._secrets)
            finally:
                # Cancelled in the middle, it is closed: what the server still says must not answer the next command.
                await connections.give_back(connection, sound=sound)
        raise failure


class Connections:
    """The connections of one event loop, no more at a time than the pool allows.

    The pool only makes them: taking one from it and giving it back would wait for a lock, so that a task which is
    cancelled twice could lose one.
    """

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self.limit: float | None = None
        self._free: list[Any] = []
        self._closed = False
        self._room = asyncio.Semaphore(pool.max_connections)
        self._patience: float | None = getattr(pool, "timeout", 0)  # seconds, None: for ever

    async def take(self) -> Any:
        """A connected one with nothing left to read; `MaxConnectionsError` when all are in use."""
        await self._enter()
        connection = None
        try:
            while self._free:
                connection = self._free.pop()
                if await _is_quiet(connection):
                    return connection
                await connection.disconnect(nowait=True)
            connection = self.pool.make_connection()
            connection.retry = AWAITED.once()
            await connection.connect()
            # One limit for the whole of a command costs less than the driver's own two.
            self.limit, connection.socket_timeout = connection.socket_timeout, None
        except BaseException:
            await self.give_back(connection, sound=False)
            raise
        return connection

    async def give_back(self, connection: Any, *, sound: bool) -> None:
        self._room.release()
        if sound and not self._closed and not getattr(connection, "should_reconnect", bool)():
            self._free.append(connection)
        elif connection is not None:
            await connection.disconnect(nowait=True)  # waits for nothing, so it cannot be cancelled half-way

    async def close(self) -> None:
        self._closed = True  # what is in use is closed when it is given back
        while self._free:
            with suppress(*LOST):
                await self._free.pop().disconnect()
        for sentinel in self._sentinels():
            with suppress(*LOST):
                await sentinel.aclose()

    def bury(self) -> None:
        while self._free:
            bury(self._free.pop())
        for sentinel in self._sentinels():
            for connection in sentinel.connection_pool._available_connections:
                bury(connection)

    async def _enter(self) -> None:
        if not self._room.locked():
            await self._room.acquire()  # at once
            return
        if self._patience == 0:
            raise MaxConnectionsError("Too many connections")
        try:
            async with asyncio.timeout(self._patience):
                await self._room.acquire()
        except TimeoutError:
            raise RedisConnectionError("No connection available.") from None

    def _sentinels(self) -> Any:
        manager = getattr(self.pool, "sentinel_manager", None)
        return manager.sentinels if manager is not None else ()


async def _is_quiet(connection: Any) -> bool:
    """Whether nothing has come in since its last answer: neither a late word nor the end.

    The loop may not have looked at the socket yet, so that is looked at too.
    """
    try:
        if await (getattr(connection, "can_read", None) or connection.can_read_destructive)():
            return False
    except (RedisConnectionError, TimeoutError, OSError):
        return False
    writer = getattr(connection, "_writer", None)
    socket = writer.get_extra_info("socket") if writer is not None else None
    if socket is None or not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(socket.fileno(), select.POLLIN)
    return not poll.poll(0)
