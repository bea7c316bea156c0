"""`first_reserved` while K rows ahead in the order are reserved already, beside the plain ways to do it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from secrets import token_hex
from typing import Any

import redis
from sqlalchemy import Engine, insert
from sqlalchemy.orm import Session

from benchmarks.figures import Claim, Section, compared
from benchmarks.levels import OWNER, must
from benchmarks.models import CHUNK, HOURS, KEY, Video, analyze, engine_for, fill, waiting
from benchmarks.pairs_databases import LABELS
from benchmarks.rounds import Contender, interleave
from reservable import configure, first_reserved
from reservable.backends.database import DatabaseBackend
from reservable.backends.redis.verbs import RedisVerbs

OURS, PLAIN, ONE = "ours: first_reserved", "load all, reserve one by one", "select one + reserve"

FREE = 100
"""Rows behind the reserved ones that are free: few, for the plain way loads them too."""

TARGETS = {
    "redis": {10_000: 50.0, 100_000: 50.0},
    "postgresql": {10_000: 70.0, 100_000: 80.0},
}
AT_NONE = 1 / 1.3
"""With nothing reserved: no slower than 1.3 times "select one + reserve"."""

SLOW = 1.5
"""Seconds above which an operation of the plain way is timed in few rounds."""


def measure(kind: str, url: str, store: str | None, reserved: int, *, rounds: int) -> list[Section]:
    """One comparison: rows at `url`, reservations in the Redis at `store`, or beside the rows (None)."""
    engine = engine_for(url)
    fill(engine, reserved + FREE)
    backend: Any = configure(store) if store is not None else configure(engine)
    occupy(engine, backend, store, reserved)
    contenders = _contenders(engine)
    notes = []
    start = time.perf_counter()
    contenders[PLAIN].after(contenders[PLAIN].run())  # type: ignore[misc]
    once = time.perf_counter() - start
    plain_rounds = rounds if once < SLOW else 1 if once > 4 * SLOW else 3
    if plain_rounds < rounds:
        notes.append(
            f"the plain way was timed in {plain_rounds} of {rounds} rounds, for it takes {once:.1f} s"
        )
    chosen = [contenders[OURS], Contender(PLAIN, *_calls(contenders[PLAIN]), rounds=plain_rounds)]
    claims = [Claim(OURS, PLAIN, TARGETS.get(kind, {}).get(reserved))]
    if not reserved:
        chosen.append(contenders[ONE])
        claims.append(Claim(OURS, ONE, AT_NONE))
    timings = interleave(chosen, rounds=rounds, operations=1 if once > 0.05 else 5, warm_up=3)
    configure(None)
    engine.dispose()
    label = "Redis (rows in PostgreSQL)" if kind == "redis" else LABELS[kind]
    return [compared(f"{label}, next free row behind {reserved:,} reserved", timings, claims, notes)]


def occupy(engine: Engine, backend: Any, store: str | None, number: int) -> None:
    """Reserve the rows 1 to `number` for six hours, in the store's own format but many at a time."""
    names = [f"videos:{n}:{KEY}" for n in range(1, number + 1)]
    if store is not None:
        _occupy_redis(store, names)
        return
    assert isinstance(backend, DatabaseBackend)
    must(backend.holder("nobody") is None)  # makes the table where it is not there yet
    now = time.time_ns() // 1000
    until = now + 6 * 3600 * 1_000_000
    with engine.begin() as connection:
        for start in range(0, len(names), CHUNK):
            rows = [
                {
                    "name": name,
                    "token": token_hex(16),
                    "owner": OWNER,
                    "fence": now,
                    "since": now,
                    "until": until,
                }
                for name in names[start : start + CHUNK]
            ]
            connection.execute(insert(backend.table), rows)
    analyze(engine)


def _occupy_redis(store: str, names: list[str]) -> None:
    verbs = RedisVerbs()
    with redis.Redis.from_url(store) as client:
        for start in range(0, len(names), CHUNK):
            pipe = client.pipeline(transaction=False)
            for name in names[start : start + CHUNK]:
                call = next(verbs.acquire(name, token_hex(16), OWNER, timedelta(hours=6)))
                pipe.eval(call.script.text, len(call.keys), *call.keys, *call.args)
            pipe.execute()


def _contenders(engine: Engine) -> dict[str, Contender]:
    """Each as one run of a cron job: a fresh session, the row, and (not timed) its release."""

    def ours(session: Session) -> Video | None:
        return first_reserved(session, waiting(), KEY, HOURS)

    def plain(session: Session) -> Video | None:
        return next((video for video in session.scalars(waiting()).all() if video.reserve(KEY, HOURS)), None)

    def one(session: Session) -> Video | None:
        video = session.scalars(waiting().limit(1)).first()
        return video if video is not None and video.reserve(KEY, HOURS) else None

    def contender(name: str, find: Callable[[Session], Video | None]) -> Contender:
        def run() -> tuple[Session, Video]:
            session = Session(engine)
            video = find(session)
            assert video is not None
            return session, video

        def after(found: tuple[Session, Video]) -> None:
            session, video = found
            must(video.release(KEY))
            session.close()

        return Contender(name, run, after)

    return {name: contender(name, find) for name, find in ((OURS, ours), (PLAIN, plain), (ONE, one))}


def _calls(contender: Contender) -> tuple[Callable[[], Any], Callable[[Any], None] | None]:
    return contender.run, contender.after
