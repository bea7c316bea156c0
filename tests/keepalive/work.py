"""What the processes of these tests do."""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import sys
import time
from typing import Any

from reservable import keepalive
from reservable.backends.opening import open_backend
from reservable.backends.redis.connect import async_from_url
from reservable.grants import Released
from tests.keepalive.doubles import Held, extended, held
from tests.processes import tell


def be_stopped(url: str) -> tuple[bool, int]:
    """Hold a name for as long as the process runs; whether it is lost then, and how often it was extended since."""
    backend = open_backend(url)
    one = held(backend, seconds=1)
    keepalive.keep(one)
    extended(one, 1)
    seen = time.monotonic()
    tell("held")
    while True:
        # The time at which a stopped process goes on is seen as a jump of its clock.
        renewals, before, seen = one.extended, seen, time.monotonic()
        if seen - before > 0.5:
            lost = one.lost.wait(1)
            tell(one.lost_at - seen)
            time.sleep(1)
            return lost, one.extended - renewals
        time.sleep(0.01)


def fork(url: str) -> tuple[int, bool, Released, bool]:
    """What a child does to its parent's: its exit status, and how the parent fares."""
    backend = open_backend(url)
    one = held(backend, seconds=0.6)
    keepalive.keep(one)
    extended(one, 1)
    pid = os.fork()
    if pid == 0:
        status = 9
        try:
            status = _child(backend, one)
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    renewals = one.extended
    time.sleep(0.7)
    return status, one.lost.is_set(), one.release(), one.extended > renewals


def _child(backend: Any, parents: Held) -> int:
    before = parents.extended
    keepalive.keep(parents)
    time.sleep(0.7)
    if parents.extended != before or parents.lost.is_set():
        return 2
    keepalive.let_go(parents)
    mine = held(backend, "videos:child:k", 0.4)
    keepalive.keep(mine)
    time.sleep(1)
    if mine.lost.is_set() or mine.extended < 4:
        return 3
    if mine.release() is not Released.YES:
        return 4
    del parents, mine
    gc.collect()
    atexit._run_exitfuncs()
    return 0


def leave(url: str, how: str) -> None:
    """Run as a script: take a name, have it renewed, say so, and end as told without a release."""
    if how == "asyncio":
        asyncio.run(_leave_a_loop(url))
        return
    backend = open_backend(url)
    one = held(backend, seconds=1.5)
    keepalive.keep(one)
    extended(one, 1)
    print("renewed", flush=True)
    sys.stdin.readline()
    if how == "exit":
        sys.exit(3)
    if how == "error":
        raise RuntimeError("uncaught")


async def _leave_a_loop(url: str) -> None:
    backend = async_from_url(url)
    sync = open_backend(url)
    one = held(sync, seconds=1.5)
    one.backend = backend
    keepalive.keep(one)
    await asyncio.to_thread(extended, one, 1)
    print("renewed", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await backend.close()


if __name__ == "__main__":
    leave(*sys.argv[1:])
