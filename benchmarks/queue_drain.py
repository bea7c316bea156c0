"""Eight processes drain a queue of trivial jobs in PostgreSQL: ours, by hand, procrastinate and pgqueuer."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import psycopg

from benchmarks.counting import Counts, counter
from benchmarks.figures import Claim, Figure, Section
from benchmarks.levels import must
from benchmarks.places import fresh
from benchmarks.queue_models import plain
from benchmarks.queue_peers import PEERS, PGQUEUER, PROCRASTINATE
from benchmarks.queue_ways import (
    BATCH,
    BY_HAND,
    BY_HAND_BATCH,
    OUR_BATCH,
    OUR_RUN,
    OUR_RUN_BATCH,
    OURS,
    WAYS,
    Way,
)
from tests.processes import Worker, tell
from tests.stores import Stores

PROCESSES = 8
WARM = range(1, PROCESSES * BATCH + 1)
"""Jobs that are done before the time begins."""
WITHIN = 300.0
GATE = 1
"""The advisory lock that workers which are warm stand at."""

CLAIMS = [
    Claim(OURS, PROCRASTINATE, 5.0),
    Claim(OURS, BY_HAND),
    Claim(OUR_RUN, PROCRASTINATE, 5.0),
    Claim(OUR_RUN, BY_HAND),
    Claim(OUR_BATCH, PGQUEUER, 1.0),
    Claim(OUR_BATCH, BY_HAND_BATCH),
    Claim(OUR_RUN_BATCH, PGQUEUER, 1.0),
    Claim(OUR_RUN_BATCH, BY_HAND_BATCH),
]
STATEMENTS = 1.1
"""Statements a row at most, where rows are finished in batches."""
NAMED = {way.name: way for way in (*WAYS, *PEERS)}
CLAIMING = {claim.contender for claim in CLAIMS}


@dataclass(frozen=True)
class Run:
    """One drained queue: `twice` counts jobs that were done again, `lost` those that were not done, or not stored."""

    rate: float
    twice: int
    lost: int
    counts: Counts | None


def measure(stores: Stores, *, rows: int, rounds: int) -> list[Section]:
    """All ways once a round, in another order each time, each on a fresh database of one server."""
    runs: dict[str, list[Run]] = {name: [] for name in NAMED}
    notes = []
    for number in range(rounds):
        for name in random.Random(number).sample([*runs], len(runs)):
            try:
                with fresh(stores, "postgresql") as url:
                    runs[name].append(_drained(NAMED[name], url, rows))
            except Exception as error:
                if name in CLAIMING:
                    raise
                del runs[name]
                notes.append(f"{name} did not run here: {type(error).__name__}: {error}")
    title = f"PostgreSQL, {rows:,} trivial jobs, {PROCESSES} processes"
    ours = [name for name in runs if name in CLAIMING]
    return [
        Section(f"{title}: drained", [line for name in runs for line in _rates(name, runs)], notes),
        Section(f"{title}: statements", [_statements(name, runs[name]) for name in ours]),
        Section(f"{title}: done twice, or lost", [_wrong(name, found) for name, found in runs.items()]),
    ]


def _rates(name: str, runs: dict[str, list[Run]]) -> list[Figure]:
    rates = [run.rate for run in runs[name]]
    line = Figure(
        name, statistics.median(rates), "rows/s", quartiles=(min(rates), max(rates)), rounds=len(rates)
    )
    claims = [claim for claim in CLAIMS if claim.contender == name and claim.peer in runs]
    return [
        replace(line, peer=claim.peer, ratio=_ratio(runs[name], runs[claim.peer]), target=claim.target)
        for claim in claims
    ] or [line]


def _ratio(ours: Sequence[Run], peers: Sequence[Run]) -> float:
    return statistics.median(one.rate / other.rate for one, other in zip(ours, peers, strict=True))


def _statements(name: str, runs: Sequence[Run]) -> Figure:
    counted = [run.counts for run in runs if run.counts is not None]
    in_batches = name in (OUR_BATCH, OUR_RUN_BATCH)
    return Figure(
        name,
        statistics.median(counts.statements for counts in counted),
        "a row",
        target=STATEMENTS if in_batches else None,
        at_most=in_batches,
    )


def _wrong(name: str, runs: Sequence[Run]) -> Figure:
    twice, lost = sum(run.twice for run in runs), sum(run.lost for run in runs)
    return Figure(
        name,
        twice + lost,
        "rows",
        target=0 if name in CLAIMING else None,
        at_most=name in CLAIMING,
        note=f"{twice} done twice, {lost} lost, in {len(runs)} rounds",
    )


def _drained(way: Way, url: str, rows: int) -> Run:
    """Workers drain some jobs to be warm, and then wait at the table that is locked; the time begins when it is not."""
    jobs = range(WARM.stop, WARM.stop + rows)
    way.fill(url, WARM)
    counted = counter("postgresql", url)
    with psycopg.connect(plain(url)) as gate, ExitStack() as stack:
        gate.execute("SELECT pg_advisory_lock(%s)", (GATE,))
        workers = [stack.enter_context(Worker(work, way.name, url)) for _ in range(PROCESSES)]
        for worker in workers:
            must(worker.hear(WITHIN) == "warm")
        way.fill(url, jobs)
        with psycopg.connect(plain(url), autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
        counted.start()
        gate.execute(f"LOCK TABLE {way.table} IN EXCLUSIVE MODE")
        gate.execute("SELECT pg_advisory_unlock(%s)", (GATE,))
        while _waiting(gate) < PROCESSES:
            time.sleep(0.01)
        start = time.time()
        gate.commit()
        done = [number for worker in workers for number in worker.result(WITHIN)]
        counts = counted.a_row(rows, 0)
        [(stored, end)] = gate.execute(way.ended).fetchall()
    wanted = {*WARM, *jobs}
    lost = len(wanted - {*done}) + len(wanted) - stored
    return Run(rows / (float(end) - start), len(done) - len({*done}), lost, counts)


def _waiting(connection: psycopg.Connection) -> int:
    """How many processes are at the locked table."""
    waiting = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted AND locktype = 'relation'"
    [(number,)] = connection.execute(waiting).fetchall()
    return int(number)


# In the processes


def work(name: str, url: str) -> list[int]:
    """Drain the queue once to be warm and once for the time; the numbers of the jobs that were done here."""
    done: list[int] = []
    with NAMED[name].open(url, done) as drain:
        drain()
        tell("warm")
        with psycopg.connect(plain(url)) as connection:
            connection.execute("SELECT pg_advisory_lock_shared(%s)", (GATE,))
        drain()
    return done
