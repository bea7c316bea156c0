"""How long a name is nobody's: from the release in one process to the grant in another that already waits."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.figures import Figure, Section
from benchmarks.levels import must
from benchmarks.pairs_databases import LABELS
from benchmarks.places import fresh
from benchmarks.rounds import Timing
from benchmarks.ways import (
    ASYNC_LOCK,
    LOCK,
    NOTIFIED,
    OURS,
    OURS_ASYNC,
    OURS_NOTIFIED,
    POP,
    PYTHON_REDIS_LOCK,
    WAYS,
    notifies,
)
from tests.processes import Worker, tell
from tests.servers import ServerMissing
from tests.stores import Stores

WITHIN = 10.0
"""Seconds that a waiter waits at most."""
BEFORE = (0.02, 0.06)
"""Seconds between which the waiter has waited when the name is released."""
TOLD, NOTICED, POLLED = 0.002, 0.005, 0.060
"""Targets, in seconds: Redis, PostgreSQL with notify=True, and databases that are asked again and again."""


@dataclass(frozen=True)
class Contender:
    way: str
    kind: str
    target: float | None = None


REDIS = [
    Contender(OURS, "redis", TOLD),
    Contender(OURS_ASYNC, "redis", TOLD),
    Contender(LOCK, "redis"),
    Contender(ASYNC_LOCK, "redis"),
    Contender(PYTHON_REDIS_LOCK, "redis"),
    Contender(POP, "redis"),
]
POSTGRESQL = [
    Contender(OURS, "postgresql", POLLED),
    *([Contender(OURS_NOTIFIED, "postgresql", NOTICED)] if notifies() else []),
    Contender(NOTIFIED, "postgresql"),
]
OTHERS = [Contender(OURS, "mariadb", POLLED), Contender(OURS, "sqlite", POLLED)]


def measure(stores: Stores, *, turns: int, hand_overs: int) -> list[Section]:
    """All contenders take turns, in another order each time, with so many hand-overs a turn."""
    section = Section(f"from release to grant, {turns * hand_overs} hand-overs between two processes")
    if not notifies():
        section.notes.append("this release has no notify=True for PostgreSQL")
    with ExitStack() as stack:
        urls = {}
        for kind in ("redis", "postgresql", "mariadb", "sqlite"):
            try:
                urls[kind] = stack.enter_context(fresh(stores, kind))
            except ServerMissing as missing:
                section.notes.append(f"{kind} is not measured: {missing}")
        contenders = [one for one in (*REDIS, *POSTGRESQL, *OTHERS) if one.kind in urls]
        took: dict[Contender, list[float]] = {one: [] for one in contenders}
        for turn in range(turns):
            for number, one in enumerate(random.Random(turn).sample(contenders, len(contenders))):
                names = [f"wake-up:{turn}.{number}:{hand_over}" for hand_over in range(hand_overs + 2)]
                took[one] += _handed_over(one.way, urls[one.kind], names)
    section.figures = [_figure(one, Timing(tuple(seconds), 1)) for one, seconds in took.items()]
    return [section]


def _figure(one: Contender, timing: Timing) -> Figure:
    label = LABELS.get(one.kind, "Redis")
    return Figure(
        f"{label}, {one.way}",
        timing.median,
        "s",
        quartiles=timing.quartiles,
        rounds=len(timing.rounds),
        target=one.target,
        at_most=one.target is not None,
        note=f"the longest {max(timing.rounds) * 1e3:.2f} ms",
    )


def _handed_over(way_name: str, url: str, names: Sequence[str]) -> list[float]:
    """The seconds that each hand-over took, without the first, in which both open their connections.

    The next name is held before one is given up, so the waiter can go on to it by itself.
    """
    took = []
    with closing(WAYS[way_name](url)) as way, Worker(wait, way_name, url, names[:-1]) as waiter:
        way.hold(names[0])
        for name, following in pairwise(names):
            must(waiter.hear() == name)
            time.sleep(random.uniform(*BEFORE))
            way.hold(following)
            released = time.monotonic()
            way.release(name)
            took.append(waiter.hear() - released)
        way.release(names[-1])
    return took[1:]


def wait(way_name: str, url: str, names: Sequence[str]) -> None:
    """In the other process: wait for one name after the other, and tell when it was granted."""
    gc.disable()
    with closing(WAYS[way_name](url)) as way:
        for name in names:
            tell(name)
            granted = way.take(name, WITHIN)
            at = time.monotonic()
            must(granted)
            tell(at)
            way.release(name)
