"""The long race: a plain counter in a file, which only stays right while the reservation excludes."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from secrets import token_hex

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
            # Started anew and not forked: a fork would bring the connections of this process along.
            context = multiprocessing.get_context("spawn")
            count(ProcessPoolExecutor(WORKERS, mp_context=context), reopen, tmp_path)
        else:
            count(ThreadPoolExecutor(WORKERS), Same(backend), tmp_path)
        assert int((tmp_path / "counter").read_text()) == TOTAL
        fences = [int(line) for line in (tmp_path / "fences").read_text().split()]
        assert len(fences) == TOTAL
        assert all(later > earlier for earlier, later in zip(fences, fences[1:], strict=False))
        assert backend.holder(NAME) is None


class Same:
    """Reopens a store that only this process has."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def __call__(self) -> Backend:
        return self._backend


def count(pool: Executor, reopen: Callable[[], Backend], folder: Path) -> None:
    """Let every worker bump its share of the total; what goes wrong in any of them comes out here."""
    with pool:
        working = [pool.submit(bump, reopen, folder, TOTAL // WORKERS) for _ in range(WORKERS)]
        for worker in working:
            worker.result()


def bump(reopen: Callable[[], Backend], folder: Path, times: int) -> None:
    """Add one to the counter that often, each time under the reservation."""
    backend = reopen()
    backend.holder(NAME)  # connected
    (folder / f"ready-{token_hex(8)}").touch()
    eventually(lambda: len([*folder.glob("ready-*")]) == WORKERS, within=60)
    for _ in range(times):
        bump_once(backend, folder)
    backend.close()


def bump_once(backend: Backend, folder: Path) -> None:
    """Read, add, write: two who are in here at once lose a bump, or read a file that is empty."""
    mine = token_hex(16)
    until = time.monotonic() + 60
    while (grant := backend.acquire(NAME, mine, "racer", timedelta(minutes=2))) is None:
        assert time.monotonic() < until, "never granted"
        time.sleep(random.uniform(0, 0.004))  # noqa: S311 - spreads load, protects nothing
    counter = folder / "counter"
    counter.write_text(str(int(counter.read_text()) + 1))
    with (folder / "fences").open("a") as fences:
        fences.write(f"{grant.fence}\n")
    assert backend.release(NAME, mine) is Released.YES
