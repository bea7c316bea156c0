"""Redis: reserve and release a fresh name, and be refused, beside other locks on the same client.

As a program of its own (`python -m benchmarks.pairs_redis URL`) it measures without hiredis and prints JSON.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from secrets import token_hex
from typing import Any

from benchmarks.figures import Claim, Figure, Section, compared
from benchmarks.levels import INSTANCE, LEVELS, TAKEN, fresh_names, must, pairs, refusals
from benchmarks.models import Base, videos
from benchmarks.rounds import Contender, interleave

LOCK, RAW = "redis-py Lock", "SET NX PX + EVALSHA"
OTHERS = ("python-redis-lock", "sherlock", "pottery Redlock")

RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"


def measure(url: str, *, rounds: int, operations: int) -> list[Section]:
    """Both comparisons with hiredis, and again without in a process of its own."""
    try:
        import hiredis  # noqa: F401
    except ImportError:
        return _measured(url, "without hiredis", rounds, operations)
    with_it = _measured(url, "with hiredis", rounds, operations)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.pairs_redis", url, str(rounds), str(operations)],
        check=True,
        stdout=subprocess.PIPE,
    )
    return with_it + [
        Section(section["title"], [Figure(**figure) for figure in section["figures"]], section["notes"])
        for section in json.loads(done.stdout)
    ]


def _measured(url: str, how: str, rounds: int, operations: int) -> list[Section]:
    import redis
    from sqlalchemy import create_engine
    from sqlalchemy.orm import Session

    from reservable import configure

    logging.getLogger("redis_lock").setLevel(logging.CRITICAL)
    client = redis.Redis.from_url(url)
    backend = configure(client)
    assert backend is not None
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine, expire_on_commit=False) as session:
        needed = (rounds + 1) * operations + 1
        instances = videos(needed)
        session.add_all(instances)
        session.commit()
        contenders = [*pairs(backend, instances[1:]), *_locks(client)]
        others, missing = _runnable(_other_locks(client))
        timings = interleave([*contenders, *others], rounds=rounds, operations=operations)
        claims = [Claim(level, LOCK, 1.0) for level in LEVELS]
        claims += [Claim(level, RAW, 0.9) for level in LEVELS]
        claims += [Claim(INSTANCE, name, 1.0) for name in OTHERS]
        sections = [compared(f"Redis, reserve + release of a fresh name, {how}", timings, claims, missing)]

        refused = [*refusals(backend, instances[0]), *_refused_lock(client)]
        timings = interleave(refused, rounds=rounds, operations=operations)
        claims = [Claim(level, LOCK, 1.0) for level in LEVELS]
        sections.append(compared(f"Redis, a refused try, {how}", timings, claims))
    configure(None)
    client.flushdb()
    client.close()
    return sections


def _locks(client: Any) -> list[Contender]:
    from redis.lock import Lock

    names, raw_names, sha = fresh_names("lock"), fresh_names("raw"), client.script_load(RELEASE)

    def lock() -> None:
        one = Lock(client, next(names), timeout=21_600, blocking=False)
        must(one.acquire())
        one.release()

    def raw() -> None:
        name, token = next(raw_names), token_hex(16)
        must(client.set(name, token, nx=True, px=21_600_000))
        client.evalsha(sha, 1, name, token)

    return [Contender(LOCK, lock), Contender(RAW, raw)]


def _other_locks(client: Any) -> dict[str, Callable[[], Contender]]:
    def python_redis_lock() -> Contender:
        import redis_lock

        names = fresh_names("prl")

        def run() -> None:
            lock = redis_lock.Lock(client, next(names), expire=21_600)
            must(lock.acquire(blocking=False))
            lock.release()

        return Contender(OTHERS[0], run)

    def sherlock() -> Contender:
        from sherlock import RedisLock

        names = fresh_names("sherlock")

        def run() -> None:
            lock = RedisLock(next(names), client=client, expire=21_600)
            must(lock.acquire(blocking=False))
            lock.release()

        return Contender(OTHERS[1], run)

    def pottery() -> Contender:
        from pottery import Redlock

        names = fresh_names("pottery")

        def run() -> None:
            lock = Redlock(key=next(names), masters={client}, auto_release_time=21_600)
            must(lock.acquire(blocking=False))
            lock.release()

        return Contender(OTHERS[2], run)

    return dict(zip(OTHERS, (python_redis_lock, sherlock, pottery), strict=True))


def _runnable(makers: dict[str, Callable[[], Contender]]) -> tuple[list[Contender], list[str]]:
    """Those that do their work once, and a line for each that does not."""
    runnable, notes = [], []
    for name, make in makers.items():
        try:
            contender = make()
            contender.run()
        except Exception as error:  # noqa: BLE001 - whatever stops it is what we want to tell
            notes.append(f"{name} does not run here: {type(error).__name__}: {error}")
        else:
            runnable.append(contender)
    return runnable, notes


def _refused_lock(client: Any) -> list[Contender]:
    from redis.lock import Lock

    def lock() -> None:
        must(not Lock(client, TAKEN, timeout=21_600, blocking=False).acquire())

    return [Contender(LOCK, lock)]


def _main() -> None:
    sys.modules["hiredis"] = None  # type: ignore[assignment]  # an import of it now fails, as if it were not there
    url, rounds, operations = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    sections = _measured(url, "without hiredis", rounds, operations)
    json.dump([asdict(section) for section in sections], sys.stdout)


if __name__ == "__main__":
    _main()
