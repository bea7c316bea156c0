"""The process of one worker: crawls until it is asked to end."""

from __future__ import annotations

import logging
import os
import signal
import threading
from pathlib import Path

from sqlalchemy import create_engine
from sqlalchemy.orm import sessionmaker

from examples.downloading.place import Place

from .job import crawl


def ready(place: Place, number: int) -> Path:
    """The file that is there when the worker can be asked to end."""
    return place.folder / f"{number}.ready"


def work(place: Place, number: int) -> None:
    """Crawl until SIGTERM comes: the page in hand is finished then, and the process ends by itself."""
    logging.basicConfig(filename=place.folder / "jobs.log", format=f"worker {number}: %(message)s")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    ready(place, number).touch()  # before, SIGTERM would have ended us at once
    engine = create_engine(place.database)
    crawl(sessionmaker(engine), stop, f"worker {number}, pid {os.getpid()}")
    engine.dispose()
