"""Waiting for a name until its store says that something became of it, without asking it time and again.

One plan for every store that can tell, and its two performers; a store brings its lines, each one connection on
which one waiter is told.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from abc import ABC, abstractmethod
from time import monotonic
from typing import Any, NamedTuple, Protocol, Self

from reservable.backends.asynchronous import heeding
from reservable.plans import Pause, Plan, arun, run
from reservable.waiting import Waiting

LONGEST = 5.0
"""Seconds for which a server may be silent until it is asked whether it is still there."""

CALM = 0.5
"""Seconds without being woken after which there is no crowd any more."""

CROWD_FIRST, CROWD_CEILING = 0.002, 0.2
"""Seconds that a waiter in a crowd stays away at most, the first time and in the long run."""

REFUSED = 60.0
"""Seconds for which a server is not asked again that has refused to tell."""


class Open(NamedTuple):
    """Connect, and be told from then on; done by this time of the monotonic clock."""

    until: float


class Read(NamedTuple):
    """The seconds that are left to the name's holder, None when nobody holds it; told of what comes after."""

    until: float


class Listen(NamedTuple):
    """Wait for the server to speak, until this time."""

    until: float


class Close(NamedTuple):
    """Close the connection, if there is one."""


class Line(Protocol):
    """One waiter's connection to a store that tells; the errors are the driver's, and `TimeoutError`."""

    def open(self, until: float) -> None:
        """`Open`, after closing what may be open."""

    def left(self, until: float) -> float | None:
        """`Read`."""

    def listen(self, until: float) -> None:
        """`Listen`: return at the latest then."""

    def close(self) -> None:
        """`Close`: waits for nobody."""


class AsyncLine(Protocol):
    """`Line` for asyncio; opening and reading are broken off by `Watch` when their time is over."""

    async def open(self) -> None: ...

    async def left(self) -> float | None: ...

    async def listen(self, until: float) -> None: ...

    async def close(self) -> None: ...


class Source(ABC):
    """What the watches of one backend share: when the server has lately not let itself be listened to."""

    def __init__(self) -> None:
        self._deaf_until = 0.0

    @abstractmethod
    def silence(self, error: Exception) -> float:
        """Seconds for which the server is not asked to tell after this error, 0 for those that pass."""

    @property
    def deaf(self) -> bool:
        return monotonic() < self._deaf_until

    def failed(self, error: Exception) -> None:
        self._deaf_until = max(self._deaf_until, monotonic() + self.silence(error))


class Watching:
    """One waiter on one name: the plan of its pauses."""

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
        while True:
            left = yield Read(_soon(until))
            if left is None:
                break
            # Read again when the holder's time is over, for it may have been extended; and without news, for
            # silence may also be that of a firewall that has forgotten the connection.
            over = _soon(min(until, monotonic() + left + 0.001))
            yield Listen(over)
            if monotonic() < over or over >= until:
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
        # Who has little time left is there nearly always, so that the others do not wear it out.
        longest = min(self._crowd, (until - monotonic()) / 50)
        yield Pause(max(0.0, random.uniform(0, longest)))  # noqa: S311 - spreads load


class Watch:
    """Waits for one name, for one thread: `with backend.watch(name) as watch: watch.pause(seconds)`."""

    def __init__(self, source: Source, line: Line) -> None:
        self._plan = Watching(source)
        self._line = line

    def pause(self, seconds: float) -> None:
        """Return when the name was released or changed hands, at once if nobody holds it, and after `seconds` at most.

        It may return early: ask for the name, and pause again. Where the server cannot tell, it is a short sleep
        that grows from pause to pause, up to 0.1 s. Raises nothing of its own.
        """
        run(self._plan.pausing(seconds), self._perform)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()

    def _perform(self, step: Any) -> Any:
        kind = type(step)
        if kind is Read:
            return self._line.left(step.until)
        if kind is Listen:
            return self._line.listen(step.until)
        if kind is Pause:
            return time.sleep(step.seconds)  # looked up late, for gevent may have replaced it
        if kind is Open:
            return self._line.open(step.until)
        return self._line.close()


class AsyncWatch:
    """`Watch` for one task: `async with backend.watch(name) as watch: await watch.pause(seconds)`."""

    def __init__(self, source: Source, line: AsyncLine) -> None:
        self._plan = Watching(source)
        self._line = line

    async def pause(self, seconds: float) -> None:
        """As `Watch.pause`."""
        await heeding(arun(self._plan.pausing(seconds), self._perform))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._line.close()

    async def _perform(self, step: Any) -> Any:
        kind = type(step)
        if kind is Pause:
            return await asyncio.sleep(step.seconds)
        if kind is Close:
            return await self._line.close()
        if kind is Listen:
            return await self._line.listen(step.until)
        async with asyncio.timeout(remaining(step.until)):
            return await (self._line.open() if kind is Open else self._line.left())


def remaining(until: float) -> float:
    """Seconds until then, never less than 0."""
    return max(0.0, until - monotonic())


def _soon(until: float) -> float:
    return min(until, monotonic() + LONGEST)
