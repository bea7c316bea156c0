"""The processes that run the cron job."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

from .job import download_videos
from .place import Place

_spawn = multiprocessing.get_context("spawn")  # as cron starts them: nothing is inherited


def work(place: Place, number: int) -> None:
    """One run of the cron job, in a process of its own."""
    logging.basicConfig(filename=place.folder / "jobs.log", format=f"worker {number}: %(message)s")
    place.configure(owner=f"worker {number}, pid {os.getpid()}")
    with place.session() as session:
        download_videos(session, place.folder / "files")


@contextmanager
def working(
    place: Place, numbers: Sequence[int], job: Callable[[Place, int], None] = work
) -> Iterator[list[BaseProcess]]:
    """Run the job once for each number, at the same time; whatever still runs at the end is killed."""
    workers: list[BaseProcess] = [_spawn.Process(target=job, args=(place, n), daemon=True) for n in numbers]
    # Ctrl-C goes to all processes of a terminal; those that ignore it leave it to this one to end them.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for worker in workers:
            worker.start()
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
