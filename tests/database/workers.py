"""What other processes do in the tests of the database backend."""

from __future__ import annotations

from datetime import timedelta
from multiprocessing.synchronize import Barrier
from secrets import token_hex

from reservable.backends.opening import open_backend
from reservable.grants import Grant

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
