"""How the pauses of `watching` are performed, in either colour: each watch on one connection of its own."""

from __future__ import annotations

import asyncio
import time
from time import monotonic
from types import TracebackType
from typing import Any, Self

from reservable.backends.redis.watching import TRACK, Close, Listen, Open, Read, Source, Watching
from reservable.plans import Pause, arun, run


class Watch:
    """Waits for one name, for one thread: `with backend.watch(name) as watch: watch.pause(seconds)`."""

    def __init__(self, source: Source, key: bytes) -> None:
        self._source = source
        self._key = key
        self._plan = Watching(source)
        self._connection: Any = None

    def pause(self, seconds: float) -> None:
        """Return when the name was released or changed hands, at once if nobody holds it, and after `seconds` at most.

        It may return early: ask for the name, and pause again. Where the server cannot tell, it is a short sleep
        that grows from pause to pause, up to 0.1 s. Raises nothing of its own.
        """
        run(self._plan.pausing(seconds), self._perform)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _perform(self, step: Any) -> Any:
        kind = type(step)
        if kind is Read:
            return self._ask(step.until, b"PTTL", self._key)
        if kind is Listen:
            return self._connection.can_read(timeout=max(0.0, step.until - monotonic()))
        if kind is Pause:
            return time.sleep(step.seconds)  # looked up late, for gevent may have replaced it
        if kind is Open:
            return self._connect(step.until)
        return self._close()

    def _connect(self, until: float) -> None:
        self._close()
        self._connection = connection = self._source.connection(self._key)
        connection.socket_timeout = connection.socket_connect_timeout = max(0.001, until - monotonic())
        connection.connect()
        self._ask(until, *TRACK)

    def _ask(self, until: float, *command: Any) -> Any:
        self._connection.send_command(*command, check_health=False)
        answer = None
        while answer is None or isinstance(answer, list):  # a push that came in before
            if not self._connection.can_read(timeout=max(0.0, until - monotonic())):
                raise TimeoutError
            answer = self._connection.read_response(disable_decoding=True, push_request=True)
        return answer

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()


class AsyncWatch:
    """`Watch` for one task: `async with backend.watch(name) as watch: await watch.pause(seconds)`."""

    def __init__(self, source: Source, key: bytes) -> None:
        self._source = source
        self._key = key
        self._plan = Watching(source)
        self._connection: Any = None

    async def pause(self, seconds: float) -> None:
        """As `Watch.pause`."""
        await arun(self._plan.pausing(seconds), self._perform)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._close()

    async def _perform(self, step: Any) -> Any:
        kind = type(step)
        if kind is Pause:
            return await asyncio.sleep(step.seconds)
        if kind is Close:
            return await self._close()
        if kind is Listen:
            return await self._connection.read_response(
                disable_decoding=True,
                timeout=max(0.0, step.until - monotonic()),
                disconnect_on_error=False,
                push_request=True,
            )
        async with asyncio.timeout(max(0.0, step.until - monotonic())):
            if kind is Open:
                return await self._connect()
            return await self._ask(b"PTTL", self._key)

    async def _connect(self) -> None:
        await self._close()
        self._connection = connection = self._source.connection(self._key)
        connection.socket_timeout = None  # a pause has a limit of its own
        await connection.connect()
        await self._ask(*TRACK)

    async def _ask(self, *command: Any) -> Any:
        await self._connection.send_command(*command, check_health=False)
        answer = None
        while answer is None or isinstance(answer, list):  # a push that came in before
            answer = await self._connection.read_response(disable_decoding=True, push_request=True)
        return answer

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)
