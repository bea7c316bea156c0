"""PostgreSQL tells waiters, in either colour: each on one connection of its own, which listens to the name's channel."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from sqlalchemy.util import greenlet_spawn

from reservable.backends import watching
from reservable.backends.database.errands import errand
from reservable.backends.database.execution import Execution
from reservable.backends.database.listening import Refused, listening
from reservable.backends.database.verbs import Execute
from reservable.backends.watching import REFUSED, AsyncWatch, Watch, remaining

RECOVERY = 0.5
"""Seconds for which nobody connects in order to listen after a connection broke or could not be made."""


class Source(watching.Source):
    """Makes the ears of one backend's watches, and reads what they are about."""

    def __init__(self, execution: Execution, channel: Callable[[str], str]) -> None:
        super().__init__()
        self._execution = execution
        self._channel = channel

    def silence(self, error: Exception) -> float:
        if isinstance(error, Refused):
            return REFUSED
        return 0.0 if isinstance(error, TimeoutError) else RECOVERY

    def watch(self, stored: str) -> Watch:
        return Watch(self, ChannelLine(self, stored))

    def async_watch(self, stored: str) -> AsyncWatch:
        return AsyncWatch(self, AsyncChannelLine(self, stored))

    def ear(self, stored: str) -> Any:
        """An ear for the stored name that has begun to listen; `Refused`, or the driver's errors."""
        return listening(self._execution.connections, self._channel(stored))

    def left(self, ear: Any, stored: str) -> float | None:
        """Seconds that are left to the holder by the server's clock, None when there is none; heard of from now on."""
        ear.forget()
        answer = self._execution.on(ear.driver, Execute("holder", {"name": stored}))
        if not answer.rows:
            return None
        *_, until, now = answer.rows[0]
        return float(until - now) / 1_000_000


class ChannelLine:
    """Told of one name, for blocking code."""

    def __init__(self, source: Source, stored: str) -> None:
        self._source = source
        self._stored = stored
        self._ear: Any = None

    def open(self, until: float) -> None:
        self.close()
        self._ear = errand(lambda: self._source.ear(self._stored), until, late=lambda ear: ear.close())

    def left(self, until: float) -> float | None:
        with self._ear.wire() as wire:
            # The errand's, as long as it reads: two threads must not be at it.
            ear, self._ear = self._ear, None

            def read() -> float | None:
                try:
                    return self._source.left(ear, self._stored)
                except BaseException:
                    ear.close()
                    raise

            try:
                left = errand(read, until, late=lambda _: ear.close())
            except BaseException:
                with suppress(OSError):
                    wire.shutdown(socket.SHUT_RDWR)  # so that it comes to its end
                raise
        self._ear = ear
        return left

    def listen(self, until: float) -> None:
        self._ear.hear(remaining(until))

    def close(self) -> None:
        ear, self._ear = self._ear, None
        if ear is not None:
            ear.close()


class AsyncChannelLine:
    """`ChannelLine` for asyncio."""

    def __init__(self, source: Source, stored: str) -> None:
        self._source = source
        self._stored = stored
        self._ear: Any = None

    async def open(self) -> None:
        await self.close()
        self._ear = await opened(lambda: self._source.ear(self._stored))

    async def left(self) -> float | None:
        ear = self._ear
        reading = asyncio.ensure_future(greenlet_spawn(self._source.left, ear, self._stored))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            # Not cancelled itself: Psycopg would first ask the server, for seconds, to give up the statement.
            self._ear = None
            ear.hang_up()
            _when_done(reading, partial(_close_read, ear))
            raise

    async def listen(self, until: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(remaining(until)):
                await self._ear.heard()

    async def close(self) -> None:
        ear, self._ear = self._ear, None
        if ear is not None:
            ear.close()
            # Transports tell of their end in the loop's next turn. Not waited for in the caller's own task: cancelled
            # in here, after its grant, it would leave that to nobody.
            _when_done(asyncio.ensure_future(asyncio.sleep(0)), _nothing)


async def opened(ear: Callable[[], Any]) -> Any:
    """An ear, made in a greenlet. Cancelled, it leaves none behind."""
    opening = asyncio.ensure_future(greenlet_spawn(ear))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        # Not cancelled itself: what a driver has of a connection by then would stay open until it is collected.
        _when_done(opening, _close_opened)
        raise


_LEFT: set[asyncio.Future[Any]] = set()
"""What comes to its end by itself. Loops hold their tasks weakly."""


def _when_done(task: asyncio.Future[Any], close: Callable[[asyncio.Future[Any]], None]) -> None:
    _LEFT.add(task)
    task.add_done_callback(_LEFT.discard)
    task.add_done_callback(close)


def _close_read(ear: Any, reading: asyncio.Future[Any]) -> None:
    ear.close()
    if not reading.cancelled():
        reading.exception()  # of interest to nobody: asyncio would complain that it was never asked for


def _nothing(_: asyncio.Future[Any]) -> None:
    """Only to be there for a turn."""


def _close_opened(opening: asyncio.Future[Any]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
