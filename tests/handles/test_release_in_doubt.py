"""A release that failed or was cancelled may be asked for again, and its answer is then the right one."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from reservable import AsyncReservation, BackendError, Reservation
from reservable.backends.memory import AsyncMemoryBackend, MemoryBackend
from tests.handles.conftest import told


class Forgetful(MemoryBackend):
    """Does what it is asked to, and then says that it failed, as often as `failures` says."""

    failures = 0

    def release(self, name: str, token: str) -> Any:
        answer = super().release(name, token)
        if self.failures:
            self.failures -= 1
            raise BackendError("the connection broke")
        return answer


def test_asked_again_it_was_its_own():
    backend = Forgetful()
    handle = Reservation(backend, "n", 60)
    handle.acquire()
    backend.failures = 1
    with pytest.raises(BackendError):
        handle.release()
    assert handle.token is not None
    assert handle.release() is True
    assert not handle.held
    assert not handle.lost.is_set()


def test_asked_again_when_somebody_else_has_it_by_now_it_is_false():
    backend = Forgetful()
    handle, other = Reservation(backend, "n", 60), Reservation(backend, "n", 60)
    handle.acquire()
    backend.failures = 1
    with pytest.raises(BackendError):
        handle.release()
    assert other.acquire()
    assert handle.release() is False
    assert other.held


class Slow(AsyncMemoryBackend):
    """Has done it before it says so."""

    async def release(self, name: str, token: str) -> Any:
        await asyncio.sleep(0)
        answer = await super().release(name, token)
        await asyncio.sleep(0.01)
        return answer


@pytest.mark.parametrize("pauses", range(5))
def test_a_cancelled_release_may_be_asked_for_again(pauses: int):
    async def story() -> None:
        backend = Slow()
        handle = AsyncReservation(backend, "n", 60)
        assert await handle.acquire()
        releasing = asyncio.create_task(handle.release())
        for _ in range(pauses):
            await asyncio.sleep(0)
        releasing.cancel()
        await asyncio.wait([releasing])  # its exception is kept, and with it all that it was doing
        assert handle.token is not None
        assert await handle.release() is True
        assert not handle.lost.is_set()
        assert await backend.holder("n") is None

    told(story())


def test_a_release_that_was_overtaken_by_a_timeout_may_be_asked_for_again():
    async def story() -> None:
        handle = AsyncReservation(Slow(), "n", 60)
        assert await handle.acquire()
        try:
            async with asyncio.timeout(0.005):
                await handle.release()
        except TimeoutError:
            assert await handle.release() is True
        assert not handle.lost.is_set()

    told(story())


def test_a_release_that_was_interrupted_may_be_asked_for_again():
    class Interrupted(Forgetful):
        def release(self, name: str, token: str) -> Any:
            answer = MemoryBackend.release(self, name, token)
            if self.failures:
                self.failures -= 1
                raise KeyboardInterrupt
            return answer

    backend = Interrupted()
    handle = Reservation(backend, "n", 60)
    handle.acquire()
    backend.failures = 1
    try:
        handle.release()
    except KeyboardInterrupt:
        assert handle.release() is True
    assert not handle.lost.is_set()


def test_a_block_that_is_cancelled_while_it_releases_is_released():
    class Waiting(AsyncMemoryBackend):
        held_up = True

        async def release(self, name: str, token: str) -> Any:
            while self.held_up:
                await asyncio.sleep(0.001)
            return await super().release(name, token)

    async def story() -> None:
        backend = Waiting()

        async def block() -> None:
            async with AsyncReservation(backend, "n", 3600):
                await asyncio.sleep(60)

        running = asyncio.create_task(block())
        while await backend.holder("n") is None:
            await asyncio.sleep(0.001)
        for _ in range(2):  # the second one finds it at its release
            running.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await running
        backend.held_up = False
        while await backend.holder("n") is not None:
            await asyncio.sleep(0.001)

    told(story())


def test_of_two_threads_that_release_one_was_the_one():
    backend = MemoryBackend()
    handle = Reservation(backend, "n", 60)
    both = threading.Barrier(2)
    release = backend.release

    def together(name: str, token: str) -> Any:
        both.wait(10)
        return release(name, token)

    backend.release = together  # type: ignore[method-assign]
    handle.acquire()
    with ThreadPoolExecutor(2) as threads:
        answers = [thread.result() for thread in [threads.submit(handle.release) for _ in range(2)]]
    assert sorted(answers) == [False, True]
    assert not handle.lost.is_set()


def test_while_its_release_is_in_doubt_it_is_not_held_and_is_reserved_anew():
    backend = Forgetful()
    handle = Reservation(backend, "n", 60)
    handle.acquire()
    backend.failures = 1
    with pytest.raises(BackendError):
        handle.release()
    assert not handle.held
    assert handle.remaining == 0.0
    with handle:
        assert handle.held
    assert backend.holder("n") is None


def test_while_a_release_that_did_not_arrive_is_in_doubt_the_store_is_asked():
    class Deaf(MemoryBackend):
        deaf = False

        def release(self, name: str, token: str) -> Any:
            if self.deaf:
                raise BackendError("the connection broke")
            return super().release(name, token)

    backend = Deaf()
    handle = Reservation(backend, "n", 60)
    handle.acquire()
    backend.deaf = True
    with pytest.raises(BackendError):
        handle.release()
    assert not handle.held
    assert handle.acquire() is False  # it stands
    backend.deaf = False
    assert handle.release() is True
    assert handle.acquire() is True


def test_one_that_runs_out_early_is_not_held_longer_than_the_store_may_have_it():
    class Forgets(MemoryBackend):
        def extend(self, name: str, token: str, lifetime: Any) -> Any:
            super().extend(name, token, lifetime)
            raise BackendError("the connection broke")

    handle = Reservation(Forgets(), "n", 600, at_least=5)
    handle.acquire()
    with pytest.raises(BackendError):
        handle.release()
    assert not handle.held
    assert handle.remaining == 0.0


@pytest.mark.parametrize("pauses", range(1, 5))
def test_a_block_whose_end_was_cancelled_is_entered_again(pauses: int):
    async def story() -> None:
        backend = Slow()
        handle = AsyncReservation(backend, "n", 60)
        entered = asyncio.Event()

        async def block() -> None:
            async with handle:
                entered.set()

        running = asyncio.create_task(block())
        await entered.wait()
        for _ in range(pauses):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])
        assert not handle.held
        while await backend.holder("n") is not None:
            await asyncio.sleep(0.001)
        async with handle:
            assert handle.held
        assert await backend.holder("n") is None

    told(story())


def test_threads_that_release_what_an_operator_broke_are_all_told_that_it_was_lost():
    backend = MemoryBackend()
    handle = Reservation(backend, "n", 60)
    together = threading.Barrier(3)
    release = backend.release

    def at_once(name: str, token: str) -> Any:
        together.wait(10)
        answer = release(name, token)
        together.wait(10)
        return answer

    handle.acquire()
    assert handle.break_()
    backend.release = at_once  # type: ignore[method-assign]
    with ThreadPoolExecutor(3) as threads:
        answers = [thread.result() for thread in [threads.submit(handle.release) for _ in range(3)]]
    assert answers == [False, False, False]
    assert handle.lost.is_set()


def test_of_threads_that_release_while_somebody_else_takes_it_one_did_it_and_nothing_was_lost():
    backend = MemoryBackend()
    handle, other = Reservation(backend, "n", 60), Reservation(backend, "n", 60)
    together, first = threading.Barrier(3), threading.Lock()
    release = backend.release

    def at_once(name: str, token: str) -> Any:
        together.wait(10)
        with first:
            answer = release(name, token)
            other.acquire()
        together.wait(10)
        return answer

    handle.acquire()
    backend.release = at_once  # type: ignore[method-assign]
    with ThreadPoolExecutor(3) as threads:
        answers = [thread.result() for thread in [threads.submit(handle.release) for _ in range(3)]]
    assert sorted(answers) == [False, False, True]
    assert not handle.lost.is_set()
    assert other.held


def test_a_release_that_was_certainly_not_done_leaves_it_held():
    class Busy(MemoryBackend):
        busy = True

        def release(self, name: str, token: str) -> Any:
            if self.busy:
                error = BackendError("somebody else is writing")
                error.nothing_done = True
                raise error
            return super().release(name, token)

    backend = Busy()
    handle = Reservation(backend, "n", 60)
    handle.acquire()
    with pytest.raises(BackendError):
        handle.release()
    assert handle.held
    backend.busy = False
    assert handle.release() is True
