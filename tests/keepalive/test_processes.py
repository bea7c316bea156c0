"""Keeping ends with the process, does not hold up its end, and has nothing to do with its children."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import redis

from reservable.backends.base import Backend
from reservable.grants import Released
from tests.keepalive import work
from tests.keepalive.doubles import NAME, is_free
from tests.processes import Worker
from tests.proxy import Proxy
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]

Connect = Callable[[str], Backend]


def test_a_stopped_process_learns_at_once_that_it_has_lost(url: str, connect: Connect) -> None:
    backend = connect(url)
    with Worker(work.be_stopped, url) as worker:
        assert worker.hear() == "held"
        worker.sigstop()
        theirs = eventually(lambda: backend.acquire(NAME, "theirs", "o", timedelta(minutes=1)))
        time.sleep(0.2)
        worker.sigcont()
        assert worker.hear() < 2, "seconds after it went on"
        assert worker.result() == (True, 0)
    found = backend.holder(NAME)
    assert found is not None
    assert theirs is not None
    assert found.fence == theirs.fence


def test_a_killed_process_keeps_nothing(redis_store: str, connect: Connect) -> None:
    backend = connect(redis_store)
    with Worker(work.be_stopped, redis_store) as worker:
        assert worker.hear() == "held"
        worker.kill()
        assert not is_free(backend)
        eventually(lambda: is_free(backend), within=1.5)


def test_a_forked_child_leaves_its_parents_alone_and_keeps_its_own(url: str) -> None:
    with Worker(work.fork, url) as worker:
        assert worker.result() == (0, False, Released.YES, True)


@pytest.fixture
def script() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-X", "dev", "-W", "error", *arguments]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def seconds_to_end(process: subprocess.Popen[str]) -> float:
    assert process.stdin is not None
    told = time.monotonic()
    process.stdin.write("\n")
    process.stdin.flush()
    process.wait(20)
    return time.monotonic() - told


@pytest.mark.parametrize("how", ["end", "exit", "error", "asyncio"])
def test_a_process_ends_at_once_and_its_reservation_soon_after(
    redis_store: str, connect: Connect, script: Callable[..., subprocess.Popen[str]], how: str
) -> None:
    backend = connect(redis_store)
    process = script("-m", "tests.keepalive.work", redis_store, how)
    assert process.stdout is not None
    assert process.stdout.readline() == "renewed\n"
    assert seconds_to_end(process) < 4
    assert process.returncode == {"exit": 3, "error": 1}.get(how, 0)
    said = process.communicate()[1]
    assert ("uncaught" in said) if how == "error" else (said == "")
    eventually(lambda: is_free(backend), within=2)


def test_a_process_ends_at_once_while_its_store_hangs(
    redis_store: str, script: Callable[..., subprocess.Popen[str]]
) -> None:
    address = redis.connection.parse_url(redis_store)
    with Proxy(address["port"]) as proxy:
        process = script(
            "-m", "tests.keepalive.work", f"redis://127.0.0.1:{proxy.port}/{address['db']}", "end"
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "renewed\n"
        proxy.stall()
        time.sleep(0.7)  # a renewal is on its way
        assert seconds_to_end(process) < 4


GEVENT = """
import sys
when, url = sys.argv[1:]
if when == "before":
    from gevent import monkey
    monkey.patch_all()
from reservable import keepalive
from reservable.backends.opening import open_backend
from tests.keepalive.doubles import held
if when == "after":
    from gevent import monkey
    monkey.patch_all()

import gevent, time
backend = open_backend(url)

def work():
    one = held(backend, seconds=1)
    keepalive.keep(one)
    gevent.sleep(2.5)
    assert one.extended >= 5 and not one.lost.is_set()
    monkey.get_original("time", "sleep")(3)  # as a C driver does: no other greenlet runs
    assert one.lost.wait(0.5)
    again = held(backend, seconds=0.5)
    keepalive.keep(again)
    gevent.sleep(1)
    assert again.extended >= 4
    return again

again = gevent.spawn(work).get()
assert again.lost.wait(1), "ends with its greenlet"
print("well")
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_under_gevent_whether_patched_before_or_after_the_import(
    redis_store: str, script: Callable[..., subprocess.Popen[str]], when: str
) -> None:
    process = subprocess.run(
        [sys.executable, "-c", GEVENT, when, redis_store],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (process.stdout, process.stderr) == ("well\n", "")
