"""Keeping ends with the object, and with the thread or the task that wanted it."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from reservable import keepalive
from reservable.backends.base import Backend
from reservable.backends.memory import MemoryBackend
from tests.keepalive.doubles import NAME, Held, Watched, extended, held, is_free
from tests.waiting import eventually

Hold = Callable[..., Held]


def test_renewing_ends_with_the_thread_that_died_without_a_release(
    url: str, connect: Callable[[str], Backend], hold: Hold
) -> None:
    backend = connect(url)
    made: list[Held] = []
    working = threading.Event()

    def work() -> None:
        made.append(hold(backend, seconds=0.6))
        working.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    eventually(lambda: made and made[0].extended >= 3)
    working.set()
    thread.join()
    extended = made[0].extended
    assert made[0].lost.wait(2), "its end is still watched"
    assert made[0].extended <= extended + 1
    eventually(lambda: is_free(backend), within=0.5)


def test_renewing_ends_with_the_task_and_not_with_another(memory: MemoryBackend) -> None:
    async def work() -> Held:
        one = held(memory, seconds=0.4)
        keepalive.keep(one)
        await asyncio.sleep(0.6)
        assert one.extended
        return one

    async def main() -> None:
        one = await asyncio.create_task(work())
        assert await asyncio.to_thread(one.lost.wait, 2)
        assert is_free(memory)
        mine = held(memory, seconds=0.4)
        keepalive.keep(mine)
        await asyncio.sleep(1)
        assert mine.extended >= 5
        mine.release()

    asyncio.run(asyncio.wait_for(main(), 5))


def test_what_is_called_in_a_loops_worker_thread_belongs_to_that_thread(memory: MemoryBackend) -> None:
    async def main() -> Held:
        one = held(memory, seconds=0.4)
        await asyncio.to_thread(keepalive.keep, one)
        await asyncio.sleep(0.6)
        assert one.extended
        return one

    one = asyncio.run(main())  # ends the worker threads, too
    assert one.lost.wait(1)


def test_renewing_ends_when_the_object_is_collected(watched: Watched) -> None:
    one = held(watched, seconds=0.6)
    keepalive.keep(one)
    gone = weakref.ref(one)
    eventually(lambda: len(watched.calls) >= 2)
    del one
    gc.collect()
    assert gone() is None
    asked = len(watched.calls)
    eventually(lambda: is_free(watched), within=2)
    assert len(watched.calls) <= asked + 1


def test_a_call_that_hangs_does_not_hold_the_object(watched: Watched) -> None:
    one = held(watched, seconds=0.4)
    watched.replies.clear()
    keepalive.keep(one)
    eventually(lambda: watched.calls)
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None
    watched.replies.set()
    eventually(lambda: is_free(watched))
    assert len(watched.calls) == 1


def test_what_was_let_go_is_neither_renewed_nor_lost(watched: Watched, hold: Hold) -> None:
    one = hold(watched, seconds=0.3)
    eventually(lambda: one.extended)
    keepalive.let_go(one)
    keepalive.let_go(one)
    eventually(lambda: watched.holder(NAME) is None)
    asked = len(watched.calls)
    time.sleep(0.3)
    assert len(watched.calls) == asked
    assert not one.lost.is_set()


def test_an_object_that_is_made_where_another_was_is_not_taken_for_it(watched: Watched) -> None:
    ids: set[int] = set()
    for n in range(5000):
        one = held(watched, f"videos:{n}:k", 0.9)
        keepalive.keep(one)
        if id(one) in ids:
            break
        ids.add(id(one))
    else:
        pytest.skip("this Python does not use an address again")
    extended(one, 6)
    assert not one.lost.is_set()
    assert sum(watched.calls) <= one.extended + 2
    keepalive.let_go(one)


@pytest.mark.parametrize("times", [20])
def test_objects_that_come_and_go_in_threads(watched: Watched, times: int) -> None:
    lost: list[Held] = []

    def work(number: int) -> None:
        for turn in range(times):
            one = held(watched, f"videos:{number}:k", 0.12)
            keepalive.keep(one)
            time.sleep(0.02 * (turn % 5))
            one.release()
            if one.losses:
                lost.append(one)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [holder.name for holder in watched.list()] == []
    assert lost == []
