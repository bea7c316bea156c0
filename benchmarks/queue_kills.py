"""Workers are killed while they drain a queue in PostgreSQL: is any work done twice, or lost?"""

from __future__ import annotations

import logging
import random
import threading
import time
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess

from sqlalchemy import Engine, create_engine, func, select
from sqlalchemy.orm import Mapped, Session, mapped_column, sessionmaker

from benchmarks.figures import Figure, Section
from benchmarks.levels import must
from benchmarks.places import fresh
from benchmarks.queue_models import Base
from reservable import LeaseLost, Queued, QueueOptions
from tests.stores import Stores

PROCESSES = 8
BATCH = 10
BETWEEN = (0.5, 1.0)
"""Seconds from one kill to the next, drawn anew each time."""
ADDED, EVERY = 25, 0.05
"""Rows that are added at a time, and how often, in seconds."""
WORK = 0.003
"""Seconds that the work takes at most, before it is written."""
WITHIN = 120.0

START = get_context("forkserver")
START.set_forkserver_preload(["benchmarks.__main__"])


class Page(Queued, Base):
    """A worker that was killed has successors after two seconds, as often as it takes."""

    __tablename__ = "pages"
    __queue__ = QueueOptions(lease="2s", max_attempts=None)

    id: Mapped[int] = mapped_column(primary_key=True)


class Effect(Base):
    """What the work on a page leaves behind; nothing but the queue keeps a second one away."""

    __tablename__ = "effects"

    id: Mapped[int] = mapped_column(primary_key=True)
    page_id: Mapped[int]


def measure(stores: Stores, *, seconds: float) -> list[Section]:
    """Kill and add for so long, then let the workers finish what is left, and count."""
    with fresh(stores, "postgresql") as url:
        engine = create_engine(url)
        Base.metadata.create_all(engine)
        kills, rows = _killed(engine, url, seconds)
        found = _counted(engine)
        engine.dispose()
    title = f"PostgreSQL, {PROCESSES} workers for {seconds:.0f} s, one killed every {BETWEEN[0]} to {BETWEEN[1]} s"
    told = f"{kills} kills, {rows:,} rows added, {found.again:,} claimed again after a kill"
    return [
        Section(
            title,
            [
                Figure("effects more than one a row", found.twice, "rows", target=0, at_most=True, note=told),
                Figure("rows without an effect", rows - found.distinct, "rows", target=0, at_most=True),
                Figure("rows not succeeded", rows - found.succeeded, "rows", target=0, at_most=True),
            ],
        )
    ]


@dataclass(frozen=True)
class Counted:
    """What the tables say at the end."""

    twice: int
    distinct: int
    succeeded: int
    again: int


def _killed(engine: Engine, url: str, seconds: float) -> tuple[int, int]:
    """Add and kill; how many workers were killed, and how many rows there are."""
    working = [_begun(url) for _ in range(PROCESSES)]
    until = time.monotonic() + seconds
    added: list[int] = []
    adding = threading.Thread(target=lambda: added.append(_add(engine, until)))
    kills = 0
    try:
        adding.start()
        while time.monotonic() < until:
            time.sleep(random.uniform(*BETWEEN))
            place = random.randrange(PROCESSES)
            kills += _end(working[place])
            working[place] = _begun(url)
        adding.join()
        _wait_for_the_rest(engine)
    finally:
        for one in working:
            _end(one)
    return kills, added[0]


def _begun(url: str) -> ForkServerProcess:
    """A worker, at work in no time: its process is the copy of one that has imported everything."""
    worker = START.Process(target=work, args=(url,))
    worker.start()
    return worker


def _end(worker: ForkServerProcess) -> bool:
    """Kill it; whether it was alive until then."""
    alive = worker.is_alive()
    worker.kill()
    worker.join()
    return alive


def _add(engine: Engine, until: float) -> int:
    """Add rows until the time is over; how many."""
    added = 0
    with Session(engine) as session:
        while time.monotonic() < until:
            session.add_all([Page() for _ in range(ADDED)])
            session.commit()
            added += ADDED
            time.sleep(EVERY)
    return added


def _wait_for_the_rest(engine: Engine) -> None:
    until = time.monotonic() + WITHIN
    with Session(engine) as session:
        while sum(Page.status_counts(session)[status] for status in ("pending", "running")):
            session.rollback()
            must(time.monotonic() < until)
            time.sleep(0.1)


def _counted(engine: Engine) -> Counted:
    with Session(engine) as session:
        [(effects, distinct)] = session.execute(
            select(func.count(Effect.id), func.count(Effect.page_id.distinct()))
        ).all()
        again = session.scalar(select(func.count(Page.id)).where(Page.attempts > 1)) or 0
        return Counted(effects - distinct, distinct, Page.status_counts(session)["succeeded"], again)


# In the processes


def work(url: str) -> None:
    """Work on rows until killed: what is done for a row and its completion are one commit."""
    logging.disable()  # of leases that a busy machine has let run out
    engine = create_engine(url)
    with Session(engine) as session:
        for lease in Page.work(sessionmaker(engine), batch=BATCH, idle="100ms"):
            time.sleep(random.uniform(0, WORK))
            try:
                with lease.transaction(session):
                    session.add(Effect(page_id=lease.pk[0]))
            except LeaseLost:  # it was too slow, and somebody else has the row
                continue
