"""The long race: a plain counter in a file, which only stays right while the reservation excludes."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from reservable.backends.base import Backend
from reservable.grants import Released
from reservable.testing.store import NAME, StoreFixtures, eventually

WORKERS = 8
TOTAL = 2000


class Racing(StoreFixtures):
    """Real processes, or threads where the store is a process's own."""

    def test_a_counter_under_a_reservation_is_exact(
        self, backend: Backend, request: pytest.FixtureRequest, tmp_path: Path
    ) -> None:
        (tmp_path / "counter").write_text("0")
        if backend.capabilities.shared:
            reopen: Callable[[], Backend] = request.getfixturevalue("reopen")
            with ProcessPoolExecutor(WORKERS, fresh_processes()) as pool:
                finish([pool.submit(bump_apart, reopen, tmp_path) for _ in range(WORKERS)])
        else:
            with ThreadPoolExecutor(WORKERS) as threads:
                finish([threads.submit(bump, backend, tmp_path) for _ in range(WORKERS)])
        assert int((tmp_path / "counter").read_text()) == TOTAL
        fences = [int(line) for line in (tmp_path / "fences").read_text().split()]
        assert len(fences) == TOTAL
        assert all(later > earlier for earlier, later in pairwise(fences))
        assert backend.holder(NAME) is None


def fresh_processes() -> Any:
    """Processes without anything of this one's: a plain fork would bring our connections along.

    Where the system can, they are forked from a process that has done nothing but import what costs time.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "reservable.backends.database", "reservable.backends.redis"])
    return context


def finish(working: list[Future[None]]) -> None:
    """Wait for all; what goes wrong in any of them comes out here."""
    for worker in working:
        worker.result()


def bump_apart(reopen: Callable[[], Backend], folder: Path) -> None:
    """`bump` in a process of its own, with a backend of its own."""
    backend = reopen()
    try:
        bump(backend, folder)
    finally:
        backend.close()


def bump(backend: Backend, folder: Path) -> None:
    """Add this worker's share to the counter, one by one, each time under the reservation."""
    backend.holder(NAME)  # connected
    (folder / f"ready-{token_hex(8)}").touch()
    eventually(lambda: len([*folder.glob("ready-*")]) == WORKERS, within=60)
    for _ in range(TOTAL // WORKERS):
        bump_once(backend, folder)


def bump_once(backend: Backend, folder: Path) -> None:
    """Read, add, write: two who are in here at once lose a bump, or read a file that is empty."""
    mine = token_hex(16)
    until = time.monotonic() + 60
    while (grant := backend.acquire(NAME, mine, "racer", timedelta(minutes=2))) is None:
        assert time.monotonic() < until, "never granted"
        time.sleep(random.uniform(0.001, 0.012))  # noqa: S311 - spreads load, protects nothing
    counter = folder / "counter"
    counter.write_text(str(int(counter.read_text()) + 1))
    with (folder / "fences").open("a") as fences:
        fences.write(f"{grant.fence}\n")
    assert backend.release(NAME, mine) is Released.YES
