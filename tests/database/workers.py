"""What other processes do in the tests of the database backend."""

from __future__ import annotations

import random
import time
from contextlib import closing
from datetime import timedelta
from functools import partial
from multiprocessing.synchronize import Barrier
from secrets import token_hex

from sqlalchemy import create_engine

from reservable.backends.database import DatabaseBackend
from reservable.backends.opening import open_backend
from reservable.grants import Grant
from tests.database.notified import MINUTE, NAME
from tests.processes import tell
from tests.waiting import eventually

_gates: list[Barrier] = []


def wait_at(gate: Barrier) -> None:
    """Where this process waits for the others before it begins."""
    _gates.append(gate)


def take_first(url: str) -> Grant | None:
    """Reserve one name on a database that has no table yet."""
    backend = open_backend(url)
    _gates[0].wait(60)
    try:
        return backend.acquire("videos:1:k", token_hex(16), "o", timedelta(minutes=1))
    finally:
        backend.close()


def release_in_turn(url: str, rounds: int, least: float, most: float) -> None:
    """Hold the name for a while, time and again; tells the round when it holds, and the time of each release.

    The latter once the waiter has been granted the name, and it is to hold it until it has heard.
    """
    with closing(DatabaseBackend(create_engine(url), notify=True)) as backend:
        for number in range(rounds):
            token = f"H{number}"
            eventually(partial(backend.acquire, NAME, token, "holder", MINUTE), 20, 0.001)
            tell(number)
            time.sleep(random.uniform(least, most))
            released = time.time()
            backend.release(NAME, token)
            eventually(lambda: (held := backend.holder(NAME)) and held.owner == "waiter", 20, 0.001)
            tell(released)
