"""What other processes do in the tests of this folder."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session

from reservable import Lease, LeaseLost
from tests.processes import tell
from tests.sqlalchemy.queue.models import Endless, Kept, Owner, Short, Task


def drain(number: int, url: str, batch: int) -> list[int]:
    """Claim and complete until nothing is left; the keys of what this process has done."""
    engine = create_engine(url)
    done = []
    with Session(engine) as session:
        while leases := Task.claim(session, batch):
            for lease in leases:
                with lease:
                    done.append(lease.pk[0])
    engine.dispose()
    return done


def die_at_work(url: str) -> None:
    """Start a row and be killed by it."""
    with Session(create_engine(url)) as session:
        for lease in Short.claim(session):
            with lease:
                tell(lease.attempt)
                os.kill(os.getpid(), signal.SIGKILL)


def work_long(url: str, seconds: float) -> str:
    """Work for longer than the lease, kept alive; what became of the row."""
    with Session(create_engine(url)) as session:
        [lease] = Kept.claim(session)
        with lease:
            tell("at work")
            time.sleep(seconds)
        return str(session.get_one(Kept, lease.pk[0]).status)


def be_stopped(url: str) -> str:
    """Start a row and stand still; what the lease says of its end afterwards."""
    with Session(create_engine(url)) as session:
        [lease] = Short.claim(session, worker="same")
        try:
            with lease:
                tell("at work")
                lease.lost.wait(30)
        except LeaseLost:
            return "lost"
        return "completed"


def produce_or_consume(number: int, url: str, rows: int) -> list[str]:
    """The first process adds rows one by one; the others claim, complete and delete them until all are gone."""
    engine = create_engine(url)
    done: list[str] = []  # by title, for SQLite gives the keys of deleted rows to new ones
    with Session(engine) as session:
        if number == 0:
            for row in range(rows):
                session.add(Task(title=str(row)))
                session.commit()
            session.add(Owner(name="all added"))
            session.commit()
            return done
        while True:
            ended = session.scalar(select(Owner.id)) is not None
            session.commit()
            leases = Task.claim(session, 3)
            done += [lease.row.title for lease in Lease.complete_all(leases)]
            Task.prune(session, 0)
            if ended and not leases:
                return done


def write_down(url: str) -> None:
    """Complete rows for ever, each in one transaction with a note of it."""
    with Session(create_engine(url)) as session:
        while True:
            for lease in Endless.claim(session, 3):
                tell(lease.pk)
                with suppress(LeaseLost), lease.transaction(session) as row:
                    session.add(Owner(name=str(row.id)))
                    session.flush()
                    time.sleep(0.005)  # time to be killed in
