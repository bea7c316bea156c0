"""Workers that start again after one was killed, each with a clean-up beside its work, for the tests in this folder."""

from __future__ import annotations

import os
import threading
import time
from datetime import datetime, timedelta

from sqlalchemy import create_engine
from sqlalchemy.orm import Session, sessionmaker

from tests.processes import tell
from tests.sqlalchemy.queue.models import Kept
from tests.sqlalchemy.queue.pools import write


def hold(url: str) -> None:
    """Claim the row, say when the lease is over, and do nothing more until killed."""
    with Session(create_engine(url)) as session:
        [lease] = Kept.claim(session)
        tell(lease.expires_at)
        time.sleep(600)


def boot(number: int, url: str, log: str, turns: int) -> list[datetime]:
    """Clean up and look for the row at once; write down when it is held and given back. When each lease began."""
    sessions = sessionmaker(create_engine(url))
    done = threading.Event()
    cleaner = threading.Thread(target=clean_up, args=(sessions, done))
    cleaner.start()
    try:
        with sessions() as session:
            return [take_a_turn(session, log) for _ in range(turns)]
    finally:
        done.set()
        cleaner.join()


def clean_up(sessions: sessionmaker[Session], done: threading.Event) -> None:
    """What is run at a start, again and again."""
    with sessions() as session:
        while not done.is_set():
            Kept.reap(session)
            Kept.prune(session, 0)
            time.sleep(0.002)


def take_a_turn(session: Session, log: str) -> datetime:
    """Wait for the row, work for a moment, and give it back."""
    while not (leases := Kept.claim(session)):
        time.sleep(0.002)
    [lease] = leases
    begun = lease.row.retry_at - timedelta(seconds=2)
    with lease:
        write(log, f"{os.getpid()} begins")
        time.sleep(0.02)
        write(log, f"{os.getpid()} ends")
        lease.release()
    return begun  # type: ignore[no-any-return]
