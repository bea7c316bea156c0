"""What it costs a process to keep many reservations alive: its share of a core, its threads, its requests."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from benchmarks.counting import Counts, counter, trace
from benchmarks.figures import Figure, Section
from benchmarks.levels import must
from benchmarks.models import engine_for
from benchmarks.pairs_databases import LABELS
from benchmarks.places import fresh
from reservable import AsyncReservation, Reservation
from reservable.backends.opening import Store
from tests.processes import Worker, tell
from tests.servers import ServerMissing
from tests.stores import Stores

HANDLES, FEWER = 1_000, 100
"""Reservations that are kept alive; fewer where each takes a thread, and what they cost is then multiplied."""
LIFETIME = 30
"""Seconds: ours are renewed every 10, python-redis-lock's every 20."""
MORE = 1.0
"""Seconds beyond the time that was asked for, so that the renewal which is due at its end is in it."""
STEP = 0.25
"""Seconds between two looks at the number of threads."""
TARGET = 5.0
"""Per cent of a core at most."""
WITHIN = 60.0
"""Seconds in which all of them must have been acquired, and then let go."""


@dataclass(frozen=True)
class Cost:
    """`cpu` in seconds of processor time a second, `threads` beyond those there were, `traced` statements of SQLite."""

    cpu: float
    threads: int
    traced: int = 0


class Meter:
    """Begins when everything is held: says so, and from then on measures this process."""

    def __init__(self, threads: int, seconds: float) -> None:
        self._before = threads
        self._most = 0
        tell("held")
        self._cpu, self._start = time.process_time(), time.monotonic()
        self._until = self._start + seconds + MORE

    def pauses(self) -> Iterator[float]:
        """Seconds to sleep, again and again until the time is over."""
        while time.monotonic() < self._until:
            self._most = max(self._most, threading.active_count())
            yield STEP

    def cost(self, traced: int = 0) -> Cost:
        seconds = time.monotonic() - self._start
        return Cost((time.process_time() - self._cpu) / seconds, self._most - self._before, traced)


@dataclass(frozen=True)
class Contender:
    name: str
    kind: str
    hold: Callable[[str, int, float], Cost]
    handles: int = HANDLES
    ours: bool = True


def measure(stores: Stores, *, seconds: float) -> list[Section]:
    """Each in a process of its own, one after the other, on an empty store."""
    section = Section(
        f"{HANDLES:,} reservations of {LIFETIME} s kept alive for {seconds:.0f} s: share of a core"
    )
    for one in CONTENDERS:
        try:
            with fresh(stores, one.kind) as url:
                cost, counts = _held(one, url, seconds)
        except ServerMissing as missing:
            section.notes.append(f"{one.name} is not measured: {missing}")
        except Exception as error:
            if one.ours:
                raise
            section.notes.append(f"{one.name} does not run here: {type(error).__name__}: {error}")
        else:
            section.figures.append(_figure(one, cost, counts))
    return [section]


def _held(one: Contender, url: str, seconds: float) -> tuple[Cost, Counts | None]:
    counted = counter(one.kind, url)
    with Worker(one.hold, url, one.handles, seconds) as worker:
        must(worker.hear(WITHIN) == "held")
        counted.start()
        cost: Cost = worker.result(seconds + MORE + WITHIN)
        return cost, counted.a_row(1, cost.traced)


def _figure(one: Contender, cost: Cost, counts: Counts | None) -> Figure:
    times = HANDLES / one.handles
    notes = [f"{cost.threads * times:,.0f} threads"]
    if counts is not None:
        what = "commands, those in scripts included" if one.kind == "redis" else "statements"
        notes.append(f"{counts.statements * times:,.0f} {what}")
        notes += [] if counts.trips is None else [f"{counts.trips * times:,.0f} requests"]
    if one.handles != HANDLES:
        notes.append(f"measured with {one.handles}, and multiplied")
    return Figure(
        one.name,
        100 * cost.cpu * times,
        "%",
        target=TARGET if one.ours else None,
        at_most=one.ours,
        note="; ".join(notes),
    )


# In the processes


def hold(url: str, handles: int, seconds: float) -> Cost:
    """Ours, blocking."""
    threads = threading.active_count()
    engine: Any = None if url.startswith("redis") else engine_for(url)
    traced = trace(engine) if url.startswith("sqlite") else []
    with closing(Store(engine or url).blocking) as backend:
        held = [Reservation(backend, f"kept:{number}", LIFETIME, renew=True) for number in range(handles)]
        must(all(one.acquire() for one in held))
        before = len(traced)
        meter = Meter(threads, seconds)
        for pause in meter.pauses():
            time.sleep(pause)
        cost = meter.cost(len(traced) - before)
        must(min(one.remaining for one in held) > LIFETIME / 3)
    return cost


def hold_async(url: str, handles: int, seconds: float) -> Cost:
    """Ours, under asyncio."""

    async def main() -> Cost:
        threads = threading.active_count()
        backend = Store(url).awaited
        held = [
            AsyncReservation(backend, f"kept:{number}", LIFETIME, renew=True) for number in range(handles)
        ]
        must(all([await one.acquire() for one in held]))
        meter = Meter(threads, seconds)
        for pause in meter.pauses():
            await asyncio.sleep(pause)
        cost = meter.cost()
        must(min(one.remaining for one in held) > LIFETIME / 3)
        await backend.close()
        return cost

    return asyncio.run(main())


def hold_python_redis_lock(url: str, handles: int, seconds: float) -> Cost:
    """python-redis-lock: a thread for each."""
    import redis
    import redis_lock

    threads = threading.active_count()
    with redis.Redis.from_url(url) as client:
        held = [
            redis_lock.Lock(client, f"kept:{number}", expire=LIFETIME, auto_renewal=True)
            for number in range(handles)
        ]
        must(all(one.acquire(blocking=False) for one in held))
        meter = Meter(threads, seconds)
        for pause in meter.pauses():
            time.sleep(pause)
        cost = meter.cost()
        must(all(one.locked() for one in held))
    return cost


CONTENDERS = [
    Contender("Redis, ours", "redis", hold),
    Contender("Redis, ours, asyncio", "redis", hold_async),
    Contender("Redis, python-redis-lock", "redis", hold_python_redis_lock, FEWER, ours=False),
    Contender("PostgreSQL, ours", "postgresql", hold),
    Contender(f"{LABELS['sqlite']}, ours", "sqlite", hold),
]
