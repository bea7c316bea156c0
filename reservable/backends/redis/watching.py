"""Waiting for a name until the server says that something became of it, without asking it time and again.

`CLIENT TRACKING` makes Redis remember which keys a connection has read, and push one message when such a key is
deleted, changed or runs out (Redis 6 and later; redis.io, "Client-side caching"). So a release wakes a waiter at
once, with no channel and no second key that a Cluster slot or an ACL would have to allow.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple

from redis.exceptions import AskError, ClusterError, ResponseError

from reservable.plans import Pause, Plan
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
        # Who has little time left is there nearly always, so that the others do not wear it out.
        longest = min(self._crowd, (until - monotonic()) / 50)
        yield Pause(max(0.0, random.uniform(0, longest)))  # noqa: S311 - spreads load


def _soon(until: float) -> float:
    return min(until, monotonic() + LONGEST)
