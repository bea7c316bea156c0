"""Redis tells waiters, in either colour: each on one connection of its own.

`CLIENT TRACKING` makes Redis remember which keys a connection has read, and push one message when such a key is
deleted, changed or runs out (Redis 6 and later; redis.io, "Client-side caching"). So a release wakes a waiter at
once, with no channel and no second key that a Cluster slot or an ACL would have to allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from redis.exceptions import AskError, ClusterError, ResponseError

from reservable.backends import watching
from reservable.backends.watching import REFUSED, AsyncWatch, Watch, remaining

TRACK = (b"CLIENT", b"TRACKING", b"ON")  # bytes, for the client's encoding may be UTF-16

GONE = -2
"""What PTTL says of a key that is not there."""


class Source(watching.Source):
    """Makes the connections of one backend's watches; remembers when the server will not tell (an ACL, Redis 5)."""

    def __init__(self, make: Callable[[bytes], Any]) -> None:
        super().__init__()
        self.connection = make

    def silence(self, error: Exception) -> float:
        refused = isinstance(error, ResponseError) and not isinstance(error, (AskError, ClusterError))
        return REFUSED if refused else 0.0

    def watch(self, key: bytes) -> Watch:
        return Watch(self, KeyLine(self, key))

    def async_watch(self, key: bytes) -> AsyncWatch:
        return AsyncWatch(self, AsyncKeyLine(self, key))


class KeyLine:
    """Told of one key, for blocking code."""

    def __init__(self, source: Source, key: bytes) -> None:
        self._source = source
        self._key = key
        self._connection: Any = None

    def open(self, until: float) -> None:
        self.close()
        self._connection = connection = self._source.connection(self._key)
        connection.socket_timeout = connection.socket_connect_timeout = max(0.001, remaining(until))
        connection.connect()
        self._ask(until, *TRACK)

    def left(self, until: float) -> float | None:
        # Asked because a server with many databases takes seconds to notice that a key has run out.
        return _seconds(self._ask(until, b"PTTL", self._key))

    def listen(self, until: float) -> None:
        self._connection.can_read(timeout=remaining(until))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()

    def _ask(self, until: float, *command: Any) -> Any:
        self._connection.send_command(*command, check_health=False)
        answer = None
        while answer is None or isinstance(answer, list):  # a push that came in before
            if not self._connection.can_read(timeout=remaining(until)):
                raise TimeoutError
            answer = self._connection.read_response(disable_decoding=True, push_request=True)
        return answer


class AsyncKeyLine:
    """`KeyLine` for asyncio."""

    def __init__(self, source: Source, key: bytes) -> None:
        self._source = source
        self._key = key
        self._connection: Any = None

    async def open(self) -> None:
        await self.close()
        self._connection = connection = self._source.connection(self._key)
        connection.socket_timeout = None  # a pause has a limit of its own
        await connection.connect()
        await self._ask(*TRACK)

    async def left(self) -> float | None:
        return _seconds(await self._ask(b"PTTL", self._key))

    async def listen(self, until: float) -> None:
        await self._connection.read_response(
            disable_decoding=True, timeout=remaining(until), disconnect_on_error=False, push_request=True
        )

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)

    async def _ask(self, *command: Any) -> Any:
        await self._connection.send_command(*command, check_health=False)
        answer = None
        while answer is None or isinstance(answer, list):  # a push that came in before
            answer = await self._connection.read_response(disable_decoding=True, push_request=True)
        return answer


def _seconds(milliseconds: int) -> float | None:
    """What PTTL's answer means; a key that was set by hand may have no end."""
    if milliseconds == GONE:
        return None
    return math.inf if milliseconds < 0 else milliseconds / 1000
