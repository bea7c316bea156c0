"""Thirty processes want one name: who gives up, how long they wait, and what their waiting costs the store."""

from __future__ import annotations

import random
import time
from contextlib import closing
from dataclasses import dataclass

from benchmarks.counting import counter
from benchmarks.figures import Figure, Section
from benchmarks.pairs_databases import LABELS
from benchmarks.places import fresh
from benchmarks.rounds import Timing
from benchmarks.ways import LOCK, OURS, PYTHON_REDIS_LOCK, WAYS
from tests.processes import race
from tests.stores import Stores

PROCESSES = 30
HOLD, WAIT = 0.02, 10.0
"""Seconds for which each holds the name, and waits for it at most."""
REST = (0.01, 0.05)
"""Seconds between which a process does something else before it wants the name again; else it would often get its own."""
WITHIN = 300.0
NAME = "crowd"

OTHERS = {"redis": (LOCK, PYTHON_REDIS_LOCK)}
"""What else there is for a kind of store."""


@dataclass(frozen=True)
class Told:
    """What one process has seen: when it began and ended by the monotonic clock, and each wait in seconds."""

    start: float
    end: float
    waits: list[float]
    given_up: int


def measure(stores: Stores, kind: str, *, rounds: int) -> list[Section]:
    """Ours, and what else there is, one after the other; each process takes the name so many times."""
    section = Section(
        f"{LABELS.get(kind, 'Redis')}, {PROCESSES} processes want one name {rounds} times each, holding it {HOLD * 1e3:.0f} ms"
    )
    for way_name in (OURS, *OTHERS.get(kind, ())):
        with fresh(stores, kind) as url:
            _prepared(way_name, url)
            counted = counter(kind, url)
            counted.start()
            told = race(want, way_name, url, rounds, processes=PROCESSES, within=WITHIN)
            waits = [wait for one in told for wait in one.waits]
            counts = counted.a_row(len(waits), 0)
        seconds = max(one.end for one in told) - min(one.start for one in told)
        timing = Timing(tuple(waits), 1)
        notes = [f"the longest {max(waits):.2f} s", f"{len(waits) / seconds:.1f} holds/s"]
        if counts is not None:
            what = "commands" if kind == "redis" else "statements"
            rate = counts.statements * len(waits) / seconds
            notes.append(f"{rate:,.0f} {what}/s, {counts.statements:.1f} {what} a hold")
            notes += [] if counts.trips is None else [f"{counts.trips:.1f} requests a hold"]
        section.figures += [
            Figure(
                f"{way_name}: waited",
                timing.median,
                "s",
                quartiles=timing.quartiles,
                rounds=len(waits),
                note="; ".join(notes),
            ),
            _given_up(way_name, sum(one.given_up for one in told)),
        ]
    return [section]


def _given_up(way_name: str, number: int) -> Figure:
    ours = way_name == OURS
    return Figure(f"{way_name}: gave up", number, "times", target=0 if ours else None, at_most=ours)


def _prepared(way_name: str, url: str) -> None:
    """Have the table made and the scripts loaded."""
    with closing(WAYS[way_name](url)) as way:
        way.hold("prepared")
        way.release("prepared")


def want(number: int, way_name: str, url: str, rounds: int) -> Told:
    """In each process: take the one name again and again, connected beforehand."""
    waits, given_up = [], 0
    with closing(WAYS[way_name](url)) as way:
        way.hold(f"connected:{number}")
        way.release(f"connected:{number}")
        begin = time.monotonic()
        for _ in range(rounds):
            start = time.monotonic()
            if way.take(NAME, WAIT):
                waits.append(time.monotonic() - start)
                time.sleep(HOLD)
                way.release(NAME)
            else:
                given_up += 1
            time.sleep(random.uniform(*REST))
    return Told(begin, time.monotonic(), waits, given_up)
