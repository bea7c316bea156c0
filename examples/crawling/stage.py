"""The stage: site, table and workers; kills one of them, pauses and resumes a page, and draws up the report."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing.process import BaseProcess
from pathlib import Path

from sqlalchemy import create_engine, make_url, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from examples.downloading import screen
from examples.downloading.place import Place, Unusable
from examples.downloading.report import Worker
from examples.downloading.workers import working
from reservable import ReservableError

from .model import Base, Page
from .report import Crawled, Run, promises
from .site import BROKEN, HOME, LATER, SLOW, Site
from .workers import ready, work

PATIENCE = 60.0
"""Seconds without any progress after which the workers are ended; what is missing then shows in the report."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every promise was kept; 1: one was broken; 2: it could not run; 130: interrupted."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # by way of what clears up
    os.environ["no_proxy"] = "127.0.0.1"  # a proxy has no business between the workers and our own site
    try:
        run = _perform(options.database, options.workers)
    except (Unusable, ReservableError, SQLAlchemyError, ImportError, OSError) as error:
        print(f"The example cannot run: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nInterrupted; everything is cleared away.", file=sys.stderr)
        return 130
    return conclude(run)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Crawl a local site with workers, one of which is killed.")
    parser.add_argument(
        "--database", metavar="URL", help="postgresql+psycopg://… or mariadb+pymysql://… (default: SQLite)"
    )
    parser.add_argument(
        "--workers", type=int, default=4, metavar="N", help="processes side by side, 2 to 64 (default: 4)"
    )
    options = parser.parse_args(arguments)
    if not 2 <= options.workers <= 64:
        parser.error("--workers is 2 to 64: one is killed, and somebody must go on")
    return options


def _perform(database: str | None, count: int) -> Run:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="reservable-demo-"))
        place = Place.make(Path(folder), database)
        if place.reservations is not None:
            raise Unusable("--database is PostgreSQL or MariaDB: the queue is the table itself")
        stack.callback(place.clear, database)
        site = stack.enter_context(Site())
        engine = create_engine(place.database)
        stack.callback(engine.dispose)
        Base.metadata.create_all(engine)
        where = make_url(place.database).get_backend_name()
        print(f"{len(site.pages)} pages, {count} workers, the queue in {where}")
        with sessionmaker(engine)() as session:
            return _crawl(place, site, session, count)


def _crawl(place: Place, site: Site, session: Session, count: int) -> Run:
    began = time.monotonic()
    home, later = Page(url=site.url(HOME)), Page(url=site.url(LATER))
    session.add_all([home, later])
    session.flush()
    later.pause(session)  # an operator's word; it commits along with the rest
    session.commit()
    with (
        screen.progress(len(site.pages), "pages") as show,
        working(place, range(1, count + 1), work) as workers,
    ):
        victim = _kill_at_halfway(site, workers)
        _wait(session, lambda done: show(done, "one worker was killed in mid-page, one page is paused"))
        resumed = time.monotonic()
        later.resume(session)
        session.commit()
        _wait(session, lambda done: show(done, "the paused page is resumed"))
        _end(place, workers)
        seen = Counter(visit.agent for visits in site.visits.values() for visit in visits if visit.whole)
        ends = [
            Worker(number, worker.pid or 0, worker.exitcode, seen[f"crawler/{worker.pid}"])
            for number, worker in enumerate(workers, 1)
        ]
    pages = _look(site, session)
    hashes = {path: site.sha256(path) for path in site.pages}
    return Run(pages, hashes, ends, victim, resumed, time.monotonic() - began)


def _kill_at_halfway(site: Site, workers: Sequence[BaseProcess]) -> int | None:
    """Kill the worker that waits for the other half of a page; its process id."""
    if not site.halfway.wait(PATIENCE):
        return None
    victim = int(site.visits[SLOW][0].agent.partition("/")[2])
    for worker in workers:
        if worker.pid == victim:
            worker.kill()
            worker.join()
    site.let_go.set()
    return victim


def _end(place: Place, workers: Sequence[BaseProcess]) -> None:
    """Ask them to end, and wait until they have."""
    until = time.monotonic() + PATIENCE
    for number, worker in enumerate(workers, 1):
        while worker.is_alive() and not ready(place, number).exists() and time.monotonic() < until:
            time.sleep(0.02)
        worker.terminate()  # SIGTERM
    for worker in workers:
        worker.join(max(0.0, until - time.monotonic()))


def _wait(session: Session, show: Callable[[int], None]) -> None:
    """Until no page is pending or running, or nothing more happens."""
    last, since = -1, time.monotonic()
    while time.monotonic() - since < PATIENCE:
        counts = Page.status_counts(session)
        session.rollback()
        done = counts["succeeded"] + counts["failed"]
        show(done)
        if not counts["pending"] + counts["running"]:
            return
        if done != last:
            last, since = done, time.monotonic()
        time.sleep(0.05)


def _look(site: Site, session: Session) -> list[Crawled]:
    """What the table says of each page, and what the site has noted of it."""
    start = len(site.url(""))
    found = []
    for page in session.scalars(select(Page).order_by(Page.id)):
        path = page.url[start:]
        messages = [error["message"] for error in page.errors]
        visits = tuple(site.visits.get(path, ()))
        found.append(Crawled(path, page.status, page.attempts, page.sha256, messages, visits))
    session.rollback()
    return found


def conclude(run: Run) -> int:
    """Show the tables; 0 when every promise was kept, else 1, with the broken ones named."""
    groups = (
        ("good pages", run.good),
        ("always answered with 500", run.of(BROKEN)),
        ("worker killed in mid-page", run.of(SLOW)),
        ("paused and resumed", run.of(LATER)),
    )
    screen.table(
        "Pages",
        ["", "pages", "visits", "attempts", "status", "last error"],
        [[label, *_group(pages)] for label, pages in groups],
    )
    screen.table(
        "Workers",
        ["worker", "pid", "pages", "ended"],
        [
            [str(w.number), str(w.pid), w.files, "killed" if w.pid == run.victim else f"with {w.exitcode}"]
            for w in run.workers
        ],
    )
    return screen.verdict(promises(run), run.seconds)


def _group(pages: Sequence[Crawled]) -> list[object]:
    statuses = ", ".join(sorted({page.status for page in pages}))
    errors = [error for page in pages for error in page.errors]
    visits = sum(len(page.visits) for page in pages)
    return [len(pages), visits, sum(page.attempts for page in pages), statuses, errors[-1] if errors else ""]
