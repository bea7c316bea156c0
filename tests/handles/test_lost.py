"""A reservation that is lost under the work: who learns of it, when, and what comes out of the block."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from typing import Any

import pytest

from reservable import AsyncReservation, ConfigurationError, Reservation, ReservationLost
from reservable.backends.memory import MemoryBackend
from tests.handles.conftest import Handles, told
from tests.waiting import eventually

LIFETIME = 1.0


async def connected(handles: Handles, lifetime: float, **options: Any) -> AsyncReservation:
    """A handle whose store is reached already, so that its short lifetime is not spent on that."""
    await handles.awaited(60).holder()
    return handles.awaited(lifetime, **options)


def stolen(handles: Handles) -> None:
    """Somebody else holds it from now on."""
    handles.store.blocking.break_(handles.name)
    assert handles.blocking(60).acquire()


def test_renewed_it_is_never_free(handles: Handles):
    rival = handles.blocking(60)
    with handles.blocking(LIFETIME, renew=True) as held:
        until = time.monotonic() + 4 * LIFETIME
        while time.monotonic() < until:
            assert rival.acquire() is False
            time.sleep(0.01)
        assert held.held
        held.check()
    assert handles.is_free


def test_when_it_is_taken_away_the_renewal_tells(handles: Handles):
    told_of: list[Any] = []
    with (
        pytest.raises(ReservationLost),
        handles.blocking(LIFETIME, renew=True, on_lost=told_of.append) as held,
    ):
        stolen(handles)
        assert held.lost.wait(5)
        eventually(lambda: told_of)
    assert told_of == [held]
    assert not handles.is_free


def test_without_renewing_its_end_is_told_to_who_asked(handles: Handles):
    told_of: list[Any] = []
    handle = handles.blocking(LIFETIME, on_lost=told_of.append)
    assert handle.acquire()
    begun = time.monotonic()
    assert handle.lost.wait(5)
    assert time.monotonic() - begun > LIFETIME - 0.1
    eventually(lambda: told_of == [handle])
    assert handle.release() is False
    time.sleep(0.05)
    assert told_of == [handle]


def test_an_error_of_the_callback_is_only_logged(handles: Handles, caplog: pytest.LogCaptureFixture):
    def fail(_: object) -> None:
        raise KeyError("of the callback")

    handle = handles.blocking(0.4, on_lost=fail)
    assert handle.acquire()
    eventually(lambda: "of the callback" in caplog.text)
    assert handle.lost.is_set()


def test_what_was_released_is_not_lost(handles: Handles):
    told_of: list[Any] = []
    handle = handles.blocking(LIFETIME, renew=True, on_lost=told_of.append)
    assert handle.acquire()
    assert handle.release()
    time.sleep(1.5 * LIFETIME)  # in which it would have been lost
    assert not told_of
    assert not handle.lost.is_set()


def test_kept_after_an_error_it_is_not_renewed_any_more(handles: Handles):
    with pytest.raises(KeyError), handles.blocking(LIFETIME, renew=True, on_error="keep"):
        raise KeyError
    assert not handles.is_free
    eventually(lambda: handles.is_free)


def test_the_body_of_an_async_block_is_cancelled(handles: Handles):
    async def story() -> None:
        told_of: list[Any] = []
        with pytest.raises(ReservationLost):
            async with await connected(handles, LIFETIME, renew=True, on_lost=told_of.append) as held:
                await asyncio.to_thread(stolen, handles)
                await asyncio.sleep(20)
                pytest.fail("went on without the reservation")
        assert held.lost.is_set()
        me = asyncio.current_task()
        assert me is not None
        assert me.cancelling() == 0
        await asyncio.sleep(0.01)
        assert told_of == [held]

    begun = time.monotonic()
    told(story())
    assert time.monotonic() - begun < 10


def test_a_cancellation_from_outside_stays_one(handles: Handles):
    async def body(inside: asyncio.Event) -> None:
        async with handles.awaited(60, renew=True):
            inside.set()
            await asyncio.sleep(60)

    async def story() -> None:
        inside = asyncio.Event()
        task = asyncio.create_task(body(inside))
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert handles.is_free

    told(story())


def test_the_bodys_own_error_comes_out_of_an_async_block(handles: Handles):
    async def story() -> None:
        with pytest.raises(KeyError):
            async with await connected(handles, LIFETIME, renew=True):
                try:
                    await asyncio.to_thread(stolen, handles)
                    await asyncio.sleep(20)
                except asyncio.CancelledError:
                    raise KeyError from None

    told(story())


def test_a_body_that_ends_well_while_it_is_lost_is_told(handles: Handles):
    async def story() -> None:
        with pytest.raises(ReservationLost):
            async with await connected(handles, LIFETIME, renew=True):
                await asyncio.to_thread(stolen, handles)
                time.sleep(2 * LIFETIME)  # noqa: ASYNC251 - the loop stands still, so that nothing can be cancelled
        await asyncio.sleep(0)  # and nothing is left to be

    told(story())


def test_a_blocked_loop_does_not_lose_it(handles: Handles):
    async def story() -> None:
        async with await connected(handles, LIFETIME, renew=True) as held:
            time.sleep(3 * LIFETIME)  # noqa: ASYNC251
            await held.check()

    told(story())


def test_whoever_waits_in_the_loop_is_woken(handles: Handles):
    async def story() -> None:
        handle = await connected(handles, LIFETIME, renew=True)
        assert await handle.acquire()
        waiting = asyncio.create_task(handle.lost.wait())
        await asyncio.sleep(0)
        await asyncio.to_thread(stolen, handles)
        assert await waiting

    told(story())


def test_a_coroutine_function_is_called_in_the_loop(handles: Handles):
    async def story() -> None:
        seen = asyncio.Event()
        where: list[Any] = []

        async def on_lost(_: object) -> None:
            where.append(threading.current_thread())
            seen.set()

        handle = await connected(handles, LIFETIME, on_lost=on_lost)
        assert await handle.acquire()
        await seen.wait()
        assert where == [threading.current_thread()]

    told(story())


def test_what_is_no_function_is_refused(handles: Handles):
    with pytest.raises(ConfigurationError, match="renew"):
        handles.blocking(60, renew="30s")
    with pytest.raises(ConfigurationError, match="on_lost"):
        handles.blocking(60, on_lost="me")


def test_what_is_extended_when_it_was_lost_already_is_given_back(handles: Handles):
    handle = handles.blocking(60)
    assert handle.acquire()
    grant, _ = handle.standing() or pytest.fail("not held")
    backend = handle.backend

    class Slow:
        def __getattr__(self, verb: str) -> Any:
            return getattr(backend, verb)

        def extend(self, *arguments: Any) -> Any:
            until = backend.extend(*arguments)
            handle.lose(grant)  # as the keeper does when the time is over on this side
            return until

    handle.backend = Slow()
    assert handle.extend(60) is False
    assert handle.lost.is_set()
    assert handles.is_free


def test_kept_after_an_error_it_stands_to_its_end_though_a_renewal_was_on_its_way():
    class Slow(MemoryBackend):
        """Answers renewals late."""

        asked = threading.Event()
        answers = threading.Event()

        def extend_many(self, held: Any, lifetime: Any) -> Any:
            self.asked.set()
            self.answers.wait(10)
            return super().extend_many(held, lifetime)

    backend = Slow()

    def job() -> None:
        with Reservation(backend, "n", 6, renew=True, on_error="keep") as held:
            assert backend.asked.wait(10)
            standing.append(held.expires_at)
            raise KeyError

    standing: list[Any] = []
    with pytest.raises(KeyError):
        job()
    gc.collect()  # which takes its time in a big process: hence a lifetime of seconds
    backend.answers.set()
    time.sleep(0.2)  # in which a wrong answer would have come
    holder = backend.holder("n")
    assert holder is not None
    assert abs((holder.until - standing[0]).total_seconds()) < 0.2
    eventually(lambda: backend.holder("n") is None, within=20)


def test_another_loop_that_looks_at_it_does_not_keep_its_own_from_hearing(shared: Handles):
    async def story() -> None:
        with pytest.raises(ReservationLost):
            async with await connected(shared, LIFETIME, renew=True) as held:
                await asyncio.to_thread(lambda: asyncio.run(held.check()))
                await asyncio.to_thread(stolen, shared)
                await asyncio.sleep(20)
                pytest.fail("went on without the reservation")

    told(story())


@pytest.mark.parametrize("error", [KeyError, asyncio.CancelledError, KeyboardInterrupt])
def test_an_async_block_keeps_under_errors_and_releases_under_interrupts(handles: Handles, error: Any):
    async def story() -> None:
        async with handles.awaited(60, on_error="keep"):
            raise error

    with pytest.raises(error):
        told(story())
    assert handles.is_free is (error is not KeyError)


def test_a_callback_that_reserves_again_neither_hides_the_loss_nor_has_its_grant_taken(handles: Handles):
    again: list[bool] = []
    handle = handles.blocking(LIFETIME, renew=True, on_lost=lambda it: again.append(it.acquire(wait=10)))
    with pytest.raises(ReservationLost), handle:
        handle.break_()
        eventually(lambda: again)
    assert again == [True]
    assert handle.held
    handle.check()
    assert handle.release() is True
    assert handles.is_free


def test_an_async_callback_that_reserves_again_neither_hides_the_loss_nor_has_its_grant_taken(
    handles: Handles,
):
    async def story() -> None:
        again = asyncio.Event()

        async def reserve(it: AsyncReservation) -> None:
            assert await it.acquire(wait=10)
            again.set()

        handle = await connected(handles, LIFETIME, renew=True, on_lost=reserve)
        with pytest.raises(ReservationLost):
            async with handle:
                await handle.break_()
                await asyncio.sleep(20)
        await asyncio.wait_for(again.wait(), 20)
        assert handle.held
        await handle.check()
        assert await handle.release() is True

    told(story())


def test_a_loss_that_the_body_itself_finds_is_told_though_it_reserves_again(handles: Handles):
    handle = handles.blocking(60)
    with pytest.raises(ReservationLost), handle:
        handle.break_()
        assert handle.extend(60) is False
        assert handle.acquire()
    assert handle.release() is True

    async def story() -> None:
        handle = handles.awaited(60)
        with pytest.raises(ReservationLost):
            async with handle:
                await handle.break_()
                assert await handle.extend(60) is False
                assert await handle.acquire()
        assert await handle.release() is True

    told(story())
