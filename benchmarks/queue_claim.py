"""A claim of twenty rows, and a look that finds nothing, in a large table beside a small one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from sqlalchemy import Engine, delete, update
from sqlalchemy.orm import Session

from benchmarks.figures import Claim, Section, compared
from benchmarks.levels import must
from benchmarks.models import engine_for
from benchmarks.pairs_databases import LABELS
from benchmarks.places import fresh
from benchmarks.queue_models import Video, add, tidy
from benchmarks.queue_ways import BATCH
from benchmarks.rounds import Contender, interleave
from reservable import Lease
from reservable.backends.database.clock import clock
from tests.stores import Stores

SMALL, LARGE = 1_000, 1_000_000
FEWER = {"mariadb": 200_000, "mysql": 200_000}
"""Rows of the large table where a million takes too long to make."""
DUE, WAITING, LEVELS = 6, 10, 5
"""Of a hundred rows: due now, and due later; the others have succeeded. Priorities where there are several."""
TARGET = 0.5
"""At most twice as long as in the small table."""
OPERATIONS = 5


def measure(stores: Stores, kind: str, *, rows: int, rounds: int) -> list[Section]:
    """Tables with one priority and with five, each large and small, all in turn in every round."""
    large = min(rows, FEWER.get(kind, LARGE))
    names = {
        (number, levels): f"{number:,} rows" + (f", {levels} priorities" if levels > 1 else "")
        for levels in (1, LEVELS)
        for number in (large, SMALL)
    }
    claims = [
        Claim(names[large, 1], names[SMALL, 1], TARGET),
        Claim(names[large, LEVELS], names[SMALL, LEVELS]),
    ]
    notes = [] if large == LARGE else [f"the large table has {large:,} rows here, for more take long to make"]
    with ExitStack() as stack:
        engines = {
            name: stack.enter_context(_table(stores, kind, number, levels))
            for (number, levels), name in names.items()
        }
        full = interleave(
            [_claiming(name, engine) for name, engine in engines.items()],
            rounds=rounds,
            operations=OPERATIONS,
        )
        for engine in engines.values():
            _finish_what_is_due(engine)
        empty = interleave(
            [_looking(name, engine) for name, engine in engines.items()], rounds=rounds, operations=OPERATIONS
        )
    return [
        compared(f"{LABELS[kind]}, claim of {BATCH} where {DUE} % are due", full, claims, notes),
        compared(f"{LABELS[kind]}, claim that finds nothing due", empty, claims, notes),
    ]


@contextmanager
def _table(stores: Stores, kind: str, rows: int, levels: int) -> Iterator[Engine]:
    with fresh(stores, kind) as url:
        engine = engine_for(url)
        add(engine, range(1, rows + 1), due=DUE, waiting=WAITING, levels=levels)
        yield engine
        engine.dispose()


def _claiming(name: str, engine: Engine) -> Contender:
    """What was claimed is finished, and takes rows like it in its place, so that every claim finds as many."""

    def run() -> list[Lease]:
        with Session(engine) as session:
            return Video.claim(session, BATCH)

    def after(leases: list[Lease]) -> None:
        must(len(leases) == BATCH)
        must(Lease.complete_all(leases) == leases)
        numbers = [lease.pk[0] for lease in leases]
        again: dict[str, Any] = {"status": "pending", "retry_at": clock(), "finished_at": None}
        with engine.begin() as connection:
            connection.execute(update(Video).where(Video.id.in_(numbers)).values(again))

    return Contender(name, run, after)


def _looking(name: str, engine: Engine) -> Contender:
    def run() -> None:
        with Session(engine) as session:
            must(not Video.claim(session, BATCH))

    return Contender(name, run)


def _finish_what_is_due(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(delete(Video).where(Video.due()))
    tidy(engine)
