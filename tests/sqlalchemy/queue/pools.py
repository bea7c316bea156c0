"""Processes that `run` until they are told to stop by a signal, for the tests in this folder."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine
from sqlalchemy.orm import sessionmaker

from reservable import Lease
from tests.processes import tell
from tests.sqlalchemy.queue.models import Kept, Short, Task

MODELS: dict[str, Any] = {"Short": Short, "Kept": Kept, "Task": Task}


def run_until_told(
    number: int, url: str, model: str, log: str, seconds: float, options: dict[str, Any]
) -> list[int]:
    """Run until SIGTERM; each row takes so long, and is written down when it begins. The keys of the rows done."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    done = []

    def handler(lease: Lease) -> None:
        write(log, f"{lease.pk[0]} {lease.token} {os.getpid()}")
        time.sleep(seconds)
        done.append(lease.pk[0])

    engine = create_engine(url)
    tell("ready")
    MODELS[model].run(sessionmaker(engine), handler, stop=stop, worker=f"process {number}", **options)
    engine.dispose()
    return done


def run_until_interrupted(url: str) -> str:
    """Run until SIGINT, which nobody handles; what came out."""
    engine = create_engine(url)

    def handler(lease: Lease) -> None:
        tell("at work")
        time.sleep(0.5)

    try:
        Task.run(sessionmaker(engine), handler, concurrency=2, batch=5)
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        engine.dispose()
    return "returned"


def write(log: str, line: str) -> None:
    """Append a line, which other processes do too."""
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.close(file)


def begun(log: Path) -> list[tuple[int, int, int]]:
    """Primary key, token and process of each row that a handler has begun, in that order."""
    with suppress(FileNotFoundError):
        lines = (line.split() for line in log.read_text().splitlines())
        return [(int(pk), int(token), int(pid)) for pk, token, pid in lines]
    return []
