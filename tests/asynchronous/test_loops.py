"""One asyncio backend in many event loops: one after the other, in threads, and when they end."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest

from reservable.backends.asynchronous import AsyncBackend
from reservable.grants import Released
from tests.asynchronous.conftest import Place
from tests.waiting import eventually

MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def nothing_is_left_to_complain() -> Iterator[None]:
    """Warnings of what is left open come when it is collected, and are errors."""
    yield
    gc.collect()


async def use(backend: AsyncBackend, name: str = "n", turns: int = 3) -> None:
    for turn in range(turns):
        assert await backend.acquire(name, str(turn), "o", MINUTE)
        assert await backend.release(name, str(turn)) is Released.YES


def test_each_run_has_its_own_connections_and_closes_them(backend: AsyncBackend, place: Place) -> None:
    for _ in range(3):
        asyncio.run(use(backend))
        eventually(lambda: place.connections() == 0)


def test_a_new_loop_for_every_call_as_bridges_from_blocking_code_make_it(
    backend: AsyncBackend, place: Place
) -> None:
    async def view() -> None:
        await use(backend)
        for _ in range(10):
            thread = threading.Thread(target=lambda: asyncio.run(use(backend, "inner")))
            thread.start()
            await asyncio.to_thread(thread.join)
        await use(backend)

    asyncio.run(view())
    eventually(lambda: place.connections() == 0)


def test_a_loop_that_is_closed_without_a_word_is_noticed_by_the_next(
    backend: AsyncBackend, place: Place
) -> None:
    for _ in range(5):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(use(backend))
        loop.close()
        # In a database the first one makes the table beside its first verb.
        eventually(lambda: 1 <= place.connections() <= (1 if place.driver == "redis" else 2))
    asyncio.run(backend.close())
    eventually(lambda: place.connections() == 0)


def test_loops_in_threads(backend: AsyncBackend) -> None:
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(5):
                asyncio.run(use(backend, f"n{number}", 20))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_tasks_of_one_loop_share_connections(backend: AsyncBackend, place: Place) -> None:
    async def many() -> None:
        for _ in range(5):  # a hundred uses, of which twenty are under way at once
            await asyncio.gather(*(use(backend, f"n{i}") for i in range(20)))
        assert place.connections() <= 20
        await backend.close()
        eventually(lambda: place.connections() == 0)
        await use(backend)

    asyncio.run(many())


@pytest.mark.parametrize("running", [True, False])
def test_a_backend_that_is_dropped_takes_its_connections_along(place: Place, running: bool) -> None:
    async def make_and_drop() -> None:
        backend = place.make()
        await use(backend)
        if running:
            del backend
            gc.collect()
            await asyncio.to_thread(eventually, lambda: place.connections() == 0)
        else:
            kept.append(backend)

    kept: list[AsyncBackend] = []
    loop = asyncio.new_event_loop()
    loop.run_until_complete(asyncio.wait_for(make_and_drop(), 5))
    kept.clear()
    gc.collect()
    eventually(lambda: place.connections() == 0)
    loop.close()


def test_closing_closes_the_connections_of_loops_in_other_threads(
    backend: AsyncBackend, place: Place
) -> None:
    used, go_on = threading.Event(), threading.Event()

    async def other() -> None:
        await use(backend)
        used.set()
        await asyncio.to_thread(go_on.wait)
        await use(backend)

    thread = threading.Thread(target=lambda: asyncio.run(other()))
    thread.start()
    used.wait()
    asyncio.run(backend.close())
    eventually(lambda: place.connections() == 0)
    go_on.set()
    thread.join()
    eventually(lambda: place.connections() == 0)


def test_a_release_in_a_generator_that_the_ending_loop_closes(backend: AsyncBackend, place: Place) -> None:
    answers = []

    async def held() -> AsyncIterator[None]:
        assert await backend.acquire("n", "T", "o", MINUTE)
        try:
            yield
        finally:
            answers.append(await backend.release("n", "T"))

    async def leave_in_the_middle() -> None:
        generators.append(held())
        async for _ in generators[0]:
            break

    generators: list[AsyncIterator[None]] = []
    asyncio.run(leave_in_the_middle())
    assert answers == [Released.YES]
    asyncio.run(backend.close())
    eventually(lambda: place.connections() == 0)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_leaves_the_connections_of_its_parent_alone(backend: AsyncBackend) -> None:
    async def parent() -> int:
        await use(backend)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                asyncio.set_event_loop(None)
                thread = threading.Thread(target=lambda: asyncio.run(use(backend, "child", 100)))
                thread.start()
                thread.join()
                gc.collect()
                status = 0
            finally:
                os._exit(status)
        await use(backend, "parent", 100)
        return await asyncio.to_thread(lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    assert asyncio.run(parent()) == 0
