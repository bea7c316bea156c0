"""Waiting for a name until the server says that something became of it, without asking it time and again.

`CLIENT TRACKING` makes Redis remember which keys a connection has read, and push one message when such a key is
deleted, changed or runs out (Redis 6 and later; redis.io, "Client-side caching"). So a release wakes a waiter at
once, with no channel and no second key that a Cluster slot or an ACL would have to allow.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from time import monotonic
from types import TracebackType
from typing import Any, NamedTuple, Self

from redis.exceptions import AskError, ClusterError, ResponseError

from reservable.plans import Pause, Plan, arun, run
from reservable.waiting import Waiting

LONGEST = 5.0
"""Seconds for which a server may be silent until it is asked whether it is still there."""

CALM = 0.5
"""Seconds without being woken after which there is no crowd any more."""

CROWD_FIRST, CROWD_CEILING = 0.002, 0.2
"""Seconds that a waiter in a crowd stays away at most, the first time and in the long run."""

TRACK = (b"CLIENT", b"TRACKING", b"ON")  # bytes, for the client's encoding may be UTF-16

GONE = -2
"""What PTTL says of a key that is not there."""

DEAF = 60.0
"""Seconds for which a server is not asked again that has refused to tell."""


class Open(NamedTuple):
    """Connect, and be told from then on; done by this time of the monotonic clock."""

    until: float


class Read(NamedTuple):
    """The milliseconds that are left of the key; from then on the server tells of its next change.

    Asked because a server with many databases takes seconds to notice that a key has run out.
    """

    until: float


class Listen(NamedTuple):
    """Wait for the server to speak, until this time."""

    until: float


class Close(NamedTuple):
    """Close the connection, if there is one."""


class Source:
    """Makes the connections of one backend's watches; remembers when the server will not tell (an ACL, Redis 5)."""

    def __init__(self, make: Callable[[bytes], Any]) -> None:
        self._make = make
        self._deaf_until = 0.0

    @property
    def deaf(self) -> bool:
        return monotonic() < self._deaf_until

    def connection(self, key: bytes) -> Any:
        return self._make(key)

    def failed(self, error: Exception) -> None:
        if isinstance(error, ResponseError) and not isinstance(error, (AskError, ClusterError)):
            self._deaf_until = monotonic() + DEAF


class Watching:
    """One waiter on one key: the plan of its pauses."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._blind = Waiting(math.inf)
        self._open = False
        self._crowd = 0.0
        self._woken = -math.inf

    def pausing(self, seconds: float) -> Plan[None]:
        until = monotonic() + seconds
        if not self._source.deaf:
            try:
                yield from self._listening(until)
            except Exception as error:  # noqa: BLE001 - whatever it is, a waiter can do without
                self._source.failed(error)
                yield Close()
            else:
                return
        yield Pause(max(0.0, min(self._blind.pause(), until - monotonic())))

    def _listening(self, until: float) -> Plan[None]:
        is_open, self._open = self._open, False  # interrupted in here, the connection is not used again
        if not is_open:
            yield Open(_soon(until))
        yield from self._letting_others_go(until)
        over = -math.inf
        # Without news it is asked again: silence may also be that of a firewall that has forgotten the connection.
        while monotonic() >= over:
            left = yield Read(_soon(until))
            if left == GONE:
                break
            end = until if left < 0 else min(until, monotonic() + (left + 1) / 1000)
            over = _soon(end)
            yield Listen(over)
            if monotonic() >= end:
                break
        if monotonic() < until:
            self._woken = monotonic()
        self._open = True

    def _letting_others_go(self, until: float) -> Plan[None]:
        """Who was woken a moment ago and is back has met others who were quicker.

        All of them would be woken again by the next release, for one to be granted. So each stays away for a while,
        at random, longer when that happens again; enough of them are listening at any time.
        """
        if monotonic() - self._woken > CALM:
            self._crowd = 0.0
            return
        self._crowd = min(max(CROWD_FIRST, self._crowd * 2), CROWD_CEILING)
        longest = min(
            self._crowd, (until - monotonic()) / 50
        )  # who has little time left is there nearly always
        yield Pause(max(0.0, random.uniform(0, longest)))  # noqa: S311 - spreads load


def _soon(until: float) -> float:
    return min(until, monotonic() + LONGEST)


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
