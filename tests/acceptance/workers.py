"""What the processes of the acceptance tests do."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from reservable import BackendError, ReservationLost, areservation, configure, reservation
from tests.processes import tell

NAME = "the-one"


def work(where: str, colour: str, lifetime: float) -> str:
    """Hold the name, kept alive, until it is lost, and say how that came out."""
    configure(where)
    return _work(lifetime) if colour == "blocking" else asyncio.run(_awork(lifetime))


def _work(lifetime: float) -> str:
    try:
        with reservation(NAME, lifetime, renew=True) as held:
            tell(held.fence)
            while not held.lost.is_set():
                time.sleep(0.01)
    except ReservationLost:
        return "ReservationLost"
    return "ended well"


async def _awork(lifetime: float) -> str:
    try:
        async with areservation(NAME, lifetime, renew=True) as held:
            tell(held.fence)
            await asyncio.sleep(600)
    except ReservationLost:
        return "ReservationLost"
    return "ended well"


def bump(number: int, wheres: list[str], colour: str, folder: str, times: int) -> int:
    """Add to a plain counter under the reservation, over wires that lose replies; how often it was added."""
    configure(wheres[number])
    counter = Path(folder) / "counter"
    return _bump(counter, times) if colour == "blocking" else asyncio.run(_abump(counter, times))


def _bump(counter: Path, times: int) -> int:
    added = 0
    for _ in range(times):
        try:
            with reservation(NAME, 20, wait=60):
                _add(counter)
                added += 1
        except BackendError:
            pass
    return added


async def _abump(counter: Path, times: int) -> int:
    added = 0
    for _ in range(times):
        try:
            async with areservation(NAME, 20, wait=60):
                _add(counter)
                added += 1
        except BackendError:
            pass
    return added


def _add(counter: Path) -> None:
    value = int(counter.read_text())
    time.sleep(0.001)
    counter.write_text(str(value + 1))


def hold_for(number: int, where: str, rounds: int, hold: float, limit: float) -> list[Any]:
    """Take the name so often, each time waiting at most so long, and hold it; the waits in seconds, None: gave up."""
    configure(where)
    waits: list[Any] = []
    for _ in range(rounds):
        held = reservation(NAME, 60)
        begun = time.monotonic()
        if held.acquire(wait=limit):
            waits.append(time.monotonic() - begun)
            time.sleep(hold)
            held.release()
        else:
            waits.append(None)
    return waits


def hold(where: str, lifetime: float) -> None:
    """Hold the name, and do nothing more until killed."""
    configure(where)
    held = reservation(NAME, lifetime)
    assert held.acquire()
    tell(held.expires_at)
    time.sleep(600)


def boot(number: int, where: str, log: str, turns: int) -> list[datetime]:
    """Clean up and try to get the name at once; write down when it is held and given back. When each grant began."""
    backend = configure(where)
    done = threading.Event()

    def clean_up() -> None:
        while not done.is_set():
            backend.prune()
            time.sleep(0.002)

    cleaner = threading.Thread(target=clean_up)
    cleaner.start()
    try:
        return [_take_a_turn(log) for _ in range(turns)]
    finally:
        done.set()
        cleaner.join()


def _take_a_turn(log: str) -> datetime:
    with reservation(NAME, 60, wait=60) as held:
        assert held.expires_at is not None
        _write(log, f"{os.getpid()} begins")
        time.sleep(0.02)
        _write(log, f"{os.getpid()} ends")
        return held.expires_at - timedelta(seconds=60)


def _write(log: str, line: str) -> None:
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.close(file)
