"""Eight processes drain a table: take the next free row, mark it done, give it back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import redis
from sqlalchemy import Engine, NullPool, func, select
from sqlalchemy.orm import Session

from benchmarks import by_hand
from benchmarks.counting import ByServer, Counter, Counts, counter, trace
from benchmarks.figures import Figure, Section
from benchmarks.models import HOURS, KEY, Base, Video, engine_for, fill, waiting
from benchmarks.pairs_databases import LABELS
from benchmarks.places import fresh
from reservable import configure, first_reserved
from tests.processes import race
from tests.stores import Stores

OURS, BY_HAND, PLAIN = "ours: first_reserved", "by hand: reservation table", "plain: load all, try each"
BY_HAND_REDIS = "by hand: SET NX on candidates"
PROCESSES = 8
WITHIN = 600.0
PLAIN_ROWS = 500
"""Rows of the plain way, which does nearly all of them once a process."""
MINIMUM = 1.0
"""Rows a second, at least level with what is written by hand (PostgreSQL)."""


def measure(stores: Stores, kind: str, *, rows: int, rounds: int) -> list[Section]:
    """All three ways, one after the other in each round, each on a fresh database; Redis has its rows in PostgreSQL."""
    on_redis = kind == "redis"
    ways = (OURS, BY_HAND_REDIS if on_redis else BY_HAND, PLAIN)
    runs: dict[str, list[Run]] = {way: [] for way in ways}
    for number in range(rounds):
        turn = number % len(ways)
        for way in (*ways[turn:], *ways[:turn]):
            if way == PLAIN and runs[PLAIN]:
                continue  # once is enough to see what it does again, and takes the longest
            number_of_rows = min(rows, PLAIN_ROWS) if way == PLAIN else rows
            with fresh(stores, "postgresql" if on_redis else kind) as url:
                if on_redis:
                    with fresh(stores, "redis") as store:
                        runs[way].append(_drained(way, kind, url, store, number_of_rows))
                else:
                    runs[way].append(_drained(way, kind, url, None, number_of_rows))
    label = "Redis (rows in PostgreSQL)" if on_redis else LABELS[kind]
    section = Section(f"{label}, draining {rows:,} rows with {PROCESSES} processes")
    peers = runs[ways[1]]
    for way in ways:
        target = MINIMUM if way == OURS and kind == "postgresql" else None
        section.figures.append(_figure(way, runs[way], ways[1], peers, target))
    return [section]


class Run:
    """One drained table."""

    def __init__(self, rows: int, seconds: float, again: int, counts: Counts | None) -> None:
        self.rate = rows / seconds
        self.again = again
        self.counts = counts


def _figure(way: str, runs: list[Run], peer: str, peers: list[Run], target: float | None) -> Figure:
    rates = sorted(run.rate for run in runs)
    middle = sorted(a.rate / b.rate for a, b in zip(runs, peers, strict=False))
    again = sum(run.again for run in runs) / len(runs)
    told = [
        f"{again:,.0f} rows done again",
        *(str(run.counts) for run in runs[-1:] if run.counts is not None),
    ]
    return Figure(
        way,
        rates[len(rates) // 2],
        "rows/s",
        quartiles=(rates[0], rates[-1]),
        rounds=len(rates),
        peer=None if runs is peers else peer,
        ratio=None if runs is peers else middle[len(middle) // 2],
        target=target,
        note="; ".join(told),
    )


def _drained(way: str, kind: str, url: str, store: str | None, rows: int) -> Run:
    engine = engine_for(url, poolclass=NullPool)
    fill(engine, rows)
    Base.metadata.create_all(engine)
    counted = _counter(way, kind, engine, store)
    engine.dispose()
    counted.start()
    times = race(worker, way, url, store, processes=PROCESSES, within=WITHIN)
    seconds = max(end for _, end, _ in times) - min(start for start, _, _ in times)
    traced = sum(traced for _, _, traced in times)
    with Session(engine) as session:
        assert session.scalar(select(func.count()).where(Video.path.is_(None))) == 0
        again = (session.scalar(select(func.sum(Video.times))) or 0) - rows
    return Run(rows, seconds, int(again), counted.a_row(rows, traced))


# In the processes


def worker(_number: int, way: str, url: str, store: str | None) -> tuple[float, float, int]:
    """Drain the table; the monotonic time of begin and end, and the statements that SQLite has counted."""
    isolation = {"isolation_level": "READ COMMITTED"} if way == BY_HAND and url.startswith("m") else {}
    engine = engine_for(url, **isolation)
    traced = trace(engine) if engine.dialect.name == "sqlite" else []
    if way in (BY_HAND, BY_HAND_REDIS):
        client = redis.Redis.from_url(store) if store is not None else None
        start = time.monotonic()
        by_hand.drain(engine, client)
    else:
        configure(store if store is not None else None)
        start = time.monotonic()
        _WORK[way](engine)
    return start, time.monotonic(), len(traced)


def drain(engine: Engine) -> None:
    """Ours."""
    with Session(engine) as session:
        while (video := first_reserved(session, waiting(), KEY, HOURS)) is not None:
            done(session, video)
            video.release(KEY)


def drain_plainly(engine: Engine) -> None:
    """Load all rows and try each: what was free when it was loaded may be done by the time it is reserved."""
    with Session(engine) as session:
        for video in session.scalars(waiting()).all():
            if video.reserve(KEY, HOURS):
                done(session, video)
                video.release(KEY)


def done(session: Session, video: Video) -> None:
    """Store the result of the work, and count it."""
    video.path = f"/films/{video.id}"
    video.size = time.time_ns() % 1_000_000
    video.times = Video.times + 1
    session.commit()


_WORK: dict[str, Callable[[Engine], None]] = {OURS: drain, PLAIN: drain_plainly}


# Counting, by the servers


class WithRedis(ByServer):
    """PostgreSQL's statements and Redis's calls together."""

    def __init__(self, engine: Engine, store: str, way: str) -> None:
        super().__init__(engine.url)
        self._store = store
        # What the library's scripts call is counted as well, and is no round trip.
        self._commands = ("eval", "evalsha", "set") if way == BY_HAND_REDIS else ("eval", "evalsha")

    def _now(self) -> tuple[int, int]:
        statements, trips = super()._now()
        with redis.Redis.from_url(self._store) as client:
            stats: Any = client.info("commandstats")
        calls = {name.removeprefix("cmdstat_"): told["calls"] for name, told in stats.items()}
        commands = sum(calls.get(name, 0) for name in self._commands)
        return statements + commands, trips + commands


def _counter(way: str, kind: str, engine: Engine, store: str | None) -> Counter:
    if store is None:
        return counter(kind, engine.url)
    try:
        return WithRedis(engine, store, way)
    except Exception:  # noqa: BLE001 - a server of the user's own may not have the extension
        return Counter()
