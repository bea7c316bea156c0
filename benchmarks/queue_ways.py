"""Ways to drain a queue that begin with a claim of twenty: the library's own, and by hand with the bare driver."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import psycopg
from sqlalchemy import NullPool, create_engine
from sqlalchemy.orm import Session, sessionmaker

from benchmarks.queue_models import Video, add, plain
from reservable import Lease

BATCH = 20
"""Rows of one claim."""

QUIET = 0.5
"""Seconds without work after which a worker of `run` stops, where the others stop at a claim that finds nothing."""

Drain = Callable[[], None]
"""Works until nothing is left."""

Open = Callable[[str, list[int]], AbstractContextManager[Drain]]
"""Given the URL and where to write down the numbers of the jobs as they are done: a worker that is connected."""


@dataclass(frozen=True)
class Way:
    """One queue, and one way to work on it."""

    name: str
    open: Open
    fill: Callable[[str, range], None]
    """Adds jobs with these numbers; makes the tables where they are not there yet."""
    table: str
    """The table that nobody can take jobs from while it is locked."""
    ended: str
    """SQL for how many jobs are done, and when the last one was, in seconds by the server's clock."""


@contextmanager
def by_commit(url: str, done: list[int]) -> Iterator[Drain]:
    """Ours, each row finished at the end of its block."""
    engine = create_engine(url)

    def drain() -> None:
        while leases := Video.claim(session, BATCH):
            for lease in leases:
                with lease:
                    done.append(lease.pk[0])

    with Session(engine) as session:
        yield drain
    engine.dispose()


@contextmanager
def by_batch(url: str, done: list[int]) -> Iterator[Drain]:
    """Ours, all rows of a claim finished at once."""
    engine = create_engine(url)

    def drain() -> None:
        while leases := Video.claim(session, BATCH):
            done.extend(lease.pk[0] for lease in leases)
            Lease.complete_all(leases)

    with Session(engine) as session:
        yield drain
    engine.dispose()


def by_run(*, complete_in_batches: bool) -> Open:
    """Ours, `run` with one thread a process."""

    @contextmanager
    def open_(url: str, done: list[int]) -> Iterator[Drain]:
        engine = create_engine(url)
        sessions = sessionmaker(engine)

        def drain() -> None:
            before, since = len(done), time.monotonic()

            def work(lease: Lease) -> None:
                nonlocal since
                done.append(lease.pk[0])
                since = time.monotonic()

            def is_quiet() -> bool:
                warm = before == 0  # others may have done it all; later there is enough for everybody
                return (warm or len(done) > before) and time.monotonic() > since + QUIET

            Video.run(sessions, work, batch=BATCH, stop=is_quiet, complete_in_batches=complete_in_batches)

        yield drain
        engine.dispose()

    return open_


def fill(url: str, numbers: range) -> None:
    """Rows of the library's queue."""
    add(create_engine(url, poolclass=NullPool), numbers)


# By hand: the least that a table can have.

TABLE = """
CREATE TABLE IF NOT EXISTS jobs (
    id bigint PRIMARY KEY, status text NOT NULL DEFAULT 'pending', worker text, finished_at timestamptz
);
CREATE INDEX IF NOT EXISTS jobs_pending ON jobs (id) WHERE status = 'pending'
"""
TAKE = f"""
UPDATE jobs SET status = 'running', worker = 'me' WHERE id IN (
    SELECT id FROM jobs WHERE status = 'pending' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT {BATCH}
) RETURNING id
"""
FINISH = "UPDATE jobs SET status = 'succeeded', finished_at = now() WHERE id = %s"
FINISH_ALL = "UPDATE jobs SET status = 'succeeded', finished_at = now() WHERE id = ANY(%s)"


def by_hand(*, all_at_once: bool) -> Open:
    """The bare psycopg: take a batch, then finish each job, or all of them, by one statement and commit."""

    @contextmanager
    def open_(url: str, done: list[int]) -> Iterator[Drain]:
        def drain() -> None:
            while numbers := [number for (number,) in connection.execute(TAKE)]:
                if all_at_once:
                    done.extend(numbers)
                    connection.execute(FINISH_ALL, (numbers,))
                    continue
                for number in numbers:
                    done.append(number)
                    connection.execute(FINISH, (number,))

        with psycopg.connect(plain(url), autocommit=True) as connection:
            yield drain

    return open_


def fill_by_hand(url: str, numbers: range) -> None:
    """Jobs of the table by hand."""
    with psycopg.connect(plain(url), autocommit=True) as connection:
        connection.execute(TABLE)
        jobs = "INSERT INTO jobs (id) SELECT generate_series(%s::bigint, %s)"
        connection.execute(jobs, (numbers.start, numbers.stop - 1))


OURS, OUR_RUN = "ours: claim 20, with lease", "ours: run(batch=20)"
OUR_BATCH, OUR_RUN_BATCH = "ours: claim 20, complete_all", "ours: run(…, complete_in_batches)"
BY_HAND, BY_HAND_BATCH = "by hand: a commit a row", "by hand: a commit a batch"

_OUR_END = "SELECT count(*), max(finished_at) / 1e6 FROM videos WHERE status = 'succeeded'"
_END_BY_HAND = "SELECT count(*), extract(epoch FROM max(finished_at)) FROM jobs WHERE status = 'succeeded'"

WAYS = [
    Way(OURS, by_commit, fill, "videos", _OUR_END),
    Way(OUR_RUN, by_run(complete_in_batches=False), fill, "videos", _OUR_END),
    Way(OUR_BATCH, by_batch, fill, "videos", _OUR_END),
    Way(OUR_RUN_BATCH, by_run(complete_in_batches=True), fill, "videos", _OUR_END),
    Way(BY_HAND, by_hand(all_at_once=False), fill_by_hand, "jobs", _END_BY_HAND),
    Way(BY_HAND_BATCH, by_hand(all_at_once=True), fill_by_hand, "jobs", _END_BY_HAND),
]
