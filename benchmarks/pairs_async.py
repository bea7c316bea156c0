"""asyncio: reserve and release a fresh name, in one loop, one after the other.

On Redis beside redis.asyncio's lock and raw commands on the same client; on PostgreSQL beside our own blocking backend.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from secrets import token_hex
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.lock import Lock
from sqlalchemy import create_engine, make_url
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from benchmarks.figures import Claim, Section, compared
from benchmarks.levels import HANDLE, LIFETIME, OWNER, VERBS, fresh_names, must, pairs
from benchmarks.models import HOURS, KEY, Base, Video, videos
from benchmarks.pairs_redis import RAW, RELEASE
from benchmarks.rounds import Contender, interleave
from reservable import AsyncBackend, AsyncReservation, configure
from reservable.backends.database import AsyncDatabaseBackend, DatabaseBackend

ASYNC_HANDLE, ASYNC_INSTANCE = "ours: AsyncReservation handle", "ours: obj.areserve/arelease"
LEVELS = (VERBS, ASYNC_HANDLE, ASYNC_INSTANCE)
LOCK = "redis.asyncio Lock"
TARGET = 0.9
"""Of the speed of redis.asyncio's lock, at each of our levels."""

DRIVERS = ("psycopg", "asyncpg")


def measure_redis(url: str, *, rounds: int, operations: int) -> list[Section]:
    """Our three levels beside redis.asyncio."""
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with asyncio.Runner() as runner, Session(engine, expire_on_commit=False) as session:
        loop = runner.get_loop()
        client = Redis.from_url(url)
        backend: Any = configure(client)
        instances = videos((rounds + 1) * operations)
        session.add_all(instances)
        session.commit()
        sha = runner.run(_loaded(client))
        contenders = [*_levels(loop, backend, instances), *_locks(loop, client, sha)]
        timings = interleave(contenders, rounds=rounds, operations=operations)
        claims = [Claim(level, LOCK, TARGET) for level in LEVELS]
        claims += [Claim(level, RAW) for level in LEVELS]
        configure(None)
        runner.run(backend.close())
        runner.run(client.aclose())
    return [compared("Redis, asyncio, reserve + release of a fresh name", timings, claims)]


def measure_postgresql(url: str, *, rounds: int, operations: int) -> list[Section]:
    """The backends of both colours on one table; without a target."""
    section = "PostgreSQL, asyncio beside blocking, reserve + release of a fresh name"
    engine = create_engine(url)
    blocking = DatabaseBackend(engine)
    contenders = pairs(blocking, ())[:2]  # the verbs and the handle; there are no instances here
    claims, notes = [], []
    with asyncio.Runner() as runner:
        backends = []
        for driver in DRIVERS:
            try:
                there = create_async_engine(make_url(url).set(drivername=f"postgresql+{driver}"))
            except ImportError as error:
                notes.append(f"{driver} is not measured: {error}")
                continue
            backends.append(backend := AsyncDatabaseBackend(there))
            ours = _levels(runner.get_loop(), backend, (), f", {driver}")
            contenders += ours
            claims += [Claim(one.name, peer) for one, peer in zip(ours, (VERBS, HANDLE), strict=True)]
        timings = interleave(contenders, rounds=rounds, operations=operations)
        for backend in backends:
            runner.run(backend.close())
    blocking.close()
    engine.dispose()
    return [compared(section, timings, claims, notes)]


def _levels(
    loop: asyncio.AbstractEventLoop, backend: AsyncBackend, instances: Sequence[Video], by: str = ""
) -> list[Contender]:
    """`levels.pairs` for asyncio; the level of instances only where there are some."""
    by_verbs, by_handle, rows = fresh_names(f"averbs{by}"), fresh_names(f"ahandles{by}"), iter(instances)

    async def verbs() -> None:
        name, token = next(by_verbs), token_hex(16)
        must(await backend.acquire(name, token, OWNER, LIFETIME))
        await backend.release(name, token)

    async def handle() -> None:
        reservation = AsyncReservation(backend, next(by_handle), HOURS)
        must(await reservation.acquire())
        await reservation.release()

    async def instance() -> None:
        video = next(rows)
        must(await video.areserve(KEY, HOURS))
        await video.arelease(KEY)

    contender = partial(Contender, loop=loop)
    levels = [contender(VERBS if not by else f"ours: AsyncBackend verbs{by}", verbs)]
    levels.append(contender(ASYNC_HANDLE + by, handle))
    return [*levels, contender(ASYNC_INSTANCE, instance)] if instances else levels


def _locks(loop: asyncio.AbstractEventLoop, client: Any, sha: str) -> list[Contender]:
    names, raw_names = fresh_names("alock"), fresh_names("araw")

    async def lock() -> None:
        one = Lock(client, next(names), timeout=21_600, blocking=False)
        must(await one.acquire())
        await one.release()

    async def raw() -> None:
        name, token = next(raw_names), token_hex(16)
        must(await client.set(name, token, nx=True, px=21_600_000))
        await client.evalsha(sha, 1, name, token)

    return [Contender(LOCK, lock, loop=loop), Contender(RAW, raw, loop=loop)]


async def _loaded(client: Any) -> str:
    """The hash of the script that releases, once the server has it."""
    sha: str = await client.script_load(RELEASE)
    return sha
