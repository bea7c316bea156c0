"""`python -m benchmarks`: measure, print one table, write it under benchmarks/results."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import (
    crowd,
    drain,
    finding,
    imports,
    keep_alive,
    pairs_async,
    pairs_databases,
    pairs_redis,
    queue_claim,
    queue_drain,
    queue_kills,
    report,
    wake_up,
)
from benchmarks.figures import Section
from benchmarks.places import fresh, servers
from tests.servers import ServerMissing
from tests.stores import STORES, Stores

OPERATIONS = 50
"""Operations a round: few, so that what is compared runs within the same tens of milliseconds."""

DATABASES = ["postgresql", "mariadb", *(["mysql"] if STORES["mysql"].given else []), "sqlite"]
AHEAD = (0, 100, 1_000, 10_000, 100_000)


@dataclass(frozen=True)
class Effort:
    """How much is measured. `rounds` is what the command line says, if it does."""

    quick: bool
    rounds: int | None

    def of(self, usual: int, quick: int) -> int:
        """The number of rounds, usually or with --quick."""
        return self.rounds or (quick if self.quick else usual)


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, nothing beyond 10,000 rows")
    parser.add_argument("--only", metavar="NAME", action="append", help="parts whose name has this in it")
    parser.add_argument("--rounds", type=int, help="rounds of every comparison")
    parser.add_argument("--disk", action="store_true", help="all servers wait for the disk at every commit")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results", metavar="DIR")
    arguments = parser.parse_args()
    effort = Effort(arguments.quick, arguments.rounds)
    wanted = [name for name in PARTS if not arguments.only or any(text in name for text in arguments.only)]
    if not wanted:
        parser.error(f"no such part; there are: {', '.join(PARTS)}")
    sections: list[Section] = []
    with servers(disk=arguments.disk) as stores:
        for name in wanted:
            start = time.monotonic()
            print(f"{name} ...", end=" ", flush=True, file=sys.stderr)
            try:
                sections += PARTS[name](stores, effort)
            except ServerMissing as missing:
                sections.append(Section(name, notes=[f"not measured: {missing}"]))
            print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)
    print(file=sys.stderr)
    report.write(sections, arguments.out)
    return 0


Part = Callable[[Stores, Effort], list[Section]]


def _parts() -> Iterator[tuple[str, Part]]:
    yield "imports", lambda _, effort: imports.measure(rounds=effort.of(30, 15))
    yield "pairs-redis", _pairs_redis
    for kind in (*DATABASES, "sqlite-journal"):
        yield f"pairs-{kind}", _pairs_of(kind)
    yield "pairs-with-disk", _pairs_with_disk
    yield "pairs-async-redis", _pairs_async("redis", pairs_async.measure_redis)
    yield "pairs-async-postgresql", _pairs_async("postgresql", pairs_async.measure_postgresql)
    for kind in ("redis", *DATABASES):
        for reserved in AHEAD:
            yield f"finding-{kind}-{reserved}", _finding_in(kind, reserved)
    for kind in (*DATABASES, "redis"):
        yield f"drain-{kind}", _drain_in(kind)
    yield "queue-drain", _queue_drain
    for kind in DATABASES:
        yield f"queue-claim-{kind}", _queue_claim_in(kind)
    yield (
        "queue-kills",
        lambda stores, effort: queue_kills.measure(stores, seconds=10 if effort.quick else 60),
    )
    yield "wake-up", lambda stores, effort: wake_up.measure(stores, turns=effort.of(5, 4), hand_overs=10)
    for kind in ("redis", "postgresql", "mariadb"):
        yield f"crowd-{kind}", _crowd_in(kind)
    yield "keep-alive", lambda stores, effort: keep_alive.measure(stores, seconds=20 if effort.quick else 30)


def _pairs_redis(stores: Stores, effort: Effort) -> list[Section]:
    with fresh(stores, "redis") as url:
        return pairs_redis.measure(url, rounds=effort.of(40, 15), operations=OPERATIONS)


def _pairs_of(kind: str) -> Part:
    def part(stores: Stores, effort: Effort) -> list[Section]:
        with fresh(stores, kind) as url:
            return pairs_databases.measure(kind, url, rounds=effort.of(40, 15), operations=OPERATIONS)

    return part


def _pairs_with_disk(_stores: Stores, effort: Effort) -> list[Section]:
    """The same pairs on PostgreSQL and MariaDB as they come: a commit waits for the disk."""
    found = []
    with servers(disk=True) as stores:
        for kind in ("postgresql", "mariadb"):
            with fresh(stores, kind) as url:
                found += pairs_databases.measure(kind, url, rounds=effort.of(15, 7), operations=20, disk=True)
    for section in found:
        section.title += ", waiting for the disk"
    return found


def _pairs_async(kind: str, measure: Callable[..., list[Section]]) -> Part:
    def part(stores: Stores, effort: Effort) -> list[Section]:
        with fresh(stores, kind) as url:
            return measure(url, rounds=effort.of(40, 15), operations=OPERATIONS)

    return part


def _finding_in(kind: str, reserved: int) -> Part:
    def part(stores: Stores, effort: Effort) -> list[Section]:
        if effort.quick and reserved > 10_000:
            return []
        rounds = effort.of(20, 7) if reserved < 10_000 else effort.of(7, 3)
        if kind != "redis":
            with fresh(stores, kind) as url:
                return finding.measure(kind, url, None, reserved, rounds=rounds)
        with fresh(stores, "postgresql") as url, fresh(stores, "redis") as store:
            return finding.measure(kind, url, store, reserved, rounds=rounds)

    return part


def _drain_in(kind: str) -> Part:
    def part(stores: Stores, effort: Effort) -> list[Section]:
        return drain.measure(stores, kind, rows=500 if effort.quick else 2_000, rounds=effort.of(3, 1))

    return part


def _queue_drain(stores: Stores, effort: Effort) -> list[Section]:
    return queue_drain.measure(stores, rows=2_000 if effort.quick else 4_000, rounds=effort.of(4, 2))


def _queue_claim_in(kind: str) -> Part:
    def part(stores: Stores, effort: Effort) -> list[Section]:
        rows = 10_000 if effort.quick else queue_claim.LARGE
        return queue_claim.measure(stores, kind, rows=rows, rounds=effort.of(20, 10))

    return part


def _crowd_in(kind: str) -> Part:
    def part(stores: Stores, effort: Effort) -> list[Section]:
        return crowd.measure(stores, kind, rounds=effort.of(20, 5))

    return part


PARTS = dict(_parts())

if __name__ == "__main__":
    sys.exit(main())
