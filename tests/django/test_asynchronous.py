from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

import reservable
from reservable import AlreadyReserved

pytestmark = pytest.mark.usefixtures("clean")


def videos(count: int) -> list[Any]:
    from tests.django.shop.models import Video

    return [Video.objects.create(place=place) for place in range(count)]


def same(one: Any) -> Any:
    return type(one)(pk=one.pk)


def test_every_call_has_a_twin(alias: str) -> None:
    one, two, three = videos(3)
    objects = type(one).objects

    async def work() -> None:
        assert await one.areserve("k", "1h") is True
        assert await same(one).areserve("k") is False
        assert await same(one).ais_reserved("k")
        assert await one.arelease("k") is True
        async with one.areservation("k", "1h") as held:
            assert held.held
            with pytest.raises(AlreadyReserved):
                async with same(one).areservation("k"):
                    raise AssertionError
            assert await objects.afirst_reserved("k") == two
            assert await objects.order_by("place").atake_reserved("k", limit=5) == [three]
        assert [found async for found in objects.aeach_reserved("k")] == [one]
        assert [found async for found in objects.unreserved("k")] == []

    asyncio.run(work())
    found = objects.reserved("k").count()
    assert found == 3


def test_a_row_that_was_found_is_released_in_either_colour(alias: str) -> None:
    [one] = videos(1)

    async def work() -> Any:
        found = await type(one).objects.afirst_reserved("k", "1h")
        assert await found.arelease("k") is True
        return await type(one).objects.afirst_reserved("k", "1h")

    assert asyncio.run(work()).release("k") is True


def test_blocking_calls_fail_as_djangos_own_before_anything_is_done(
    alias: str, fresh_database: Callable[[str], str]
) -> None:
    from django.core.exceptions import SynchronousOnlyOperation

    [one] = videos(1)
    for where in (None, fresh_database("redis"), "memory://"):
        reservable.configure(where)
        handle = one.reservation("k")

        async def work(handle: Any = handle, where: Any = where) -> None:
            for call in (
                lambda: one.reserve("k"),
                lambda: one.release("k"),
                lambda: one.is_reserved("k"),
                lambda: one.reservation("k"),
                lambda: type(one).objects.first_reserved("k"),
                lambda: type(one).objects.take_reserved("k", limit=1),
                lambda: type(one).objects.each_reserved("k"),
            ):
                with pytest.raises(SynchronousOnlyOperation):
                    call()
            if where is None:
                with pytest.raises(SynchronousOnlyOperation):
                    handle.acquire()

        asyncio.run(work())
        assert not one.is_reserved("k")
        assert one.reserve("k")
        assert one.release("k")


def test_renewed_by_a_thread_while_the_loop_runs(alias: str) -> None:
    [one] = videos(1)

    async def work() -> None:
        async with one.areservation("k", 3, renew=True) as held:
            end = held.expires_at
            async with asyncio.timeout(20):
                while held.expires_at == end:
                    await asyncio.sleep(0.01)
            await held.check()

    asyncio.run(work())


def test_cancelled_it_leaves_no_row_reserved(alias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from reservable.django.candidates import Candidates
    from tests.waiting import eventually

    [one] = videos(1)
    begun, go = threading.Event(), threading.Event()
    again = Candidates.again

    def slow(self: Any, keys: Any) -> Any:
        begun.set()
        assert go.wait(10)
        return again(self, keys)

    async def work() -> None:
        monkeypatch.setattr(Candidates, "again", slow)
        task = asyncio.ensure_future(type(one).objects.afirst_reserved("k", "1h"))
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()
        for _ in range(500):
            if not await same(one).ais_reserved("k"):
                return
            await asyncio.sleep(0.01)
        raise AssertionError("still reserved")

    asyncio.run(work())
    eventually(lambda: not one.is_reserved("k"))


@pytest.mark.parametrize("way", ["first", "each"])
def test_what_the_end_of_the_loop_cuts_off_leaves_no_row_reserved(
    alias: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    import threading

    from reservable.django.candidates import Candidates
    from tests.waiting import eventually

    [one] = videos(1)
    begun = threading.Event()
    again = Candidates.again

    def slow(self: Any, keys: Any) -> Any:
        begun.set()
        time.sleep(0.3)
        return again(self, keys)

    async def each() -> None:
        async for _ in type(one).objects.aeach_reserved("k", "1h"):
            raise AssertionError("too late")

    async def work() -> None:
        monkeypatch.setattr(Candidates, "again", slow)
        found = each() if way == "each" else type(one).objects.afirst_reserved("k", "1h")
        kept.append(asyncio.ensure_future(found))
        await asyncio.to_thread(begun.wait, 10)

    kept: list[Any] = []
    asyncio.run(work())
    assert kept[0].cancelled()
    eventually(lambda: not one.is_reserved("k"))


def test_redis_is_asked_by_its_own_client_for_asyncio(
    sqlite: str, fresh_database: Callable[[str], str]
) -> None:
    reservable.configure(fresh_database("redis"))
    one, two = videos(2)

    async def work() -> None:
        handle = one.areservation("k")
        assert type(handle.backend).__name__ == "AsyncRedisBackend"
        assert await one.areserve("k")
        assert await type(one).objects.afirst_reserved("k") == two
        assert await one.arelease("k")

    for _ in range(2):  # one event loop after the other
        asyncio.run(work())
        two.release("k")


@pytest.mark.parametrize("where", [None, "memory://"])
@pytest.mark.parametrize("verb", ["acquire", "extend", "release", "break_", "holder", "check"])
def test_a_handle_for_blocking_code_that_is_refused_in_a_loop_is_as_it_was(
    alias: str, where: str | None, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.core.exceptions import SynchronousOnlyOperation

    [one] = videos(1)
    if where is not None:
        monkeypatch.setattr(type(one), "__reservable_backend__", where, raising=False)
    handle = one.reservation("k", 60, renew=True)
    assert handle.acquire()
    standing = handle.token, handle.expires_at

    async def work() -> None:
        with pytest.raises(SynchronousOnlyOperation, match="arelease"):
            getattr(handle, verb)(*([5] if verb == "extend" else []))

    asyncio.run(work())
    assert handle.held
    assert not handle.lost.is_set()
    assert (handle.token, handle.expires_at) == standing
    assert handle.release() is True


def test_so_is_one_of_a_name_without_a_model(alias: str) -> None:
    from django.core.exceptions import SynchronousOnlyOperation

    handle = reservable.reservation("nightly", 60)
    assert handle.acquire()

    async def work() -> None:
        with pytest.raises(SynchronousOnlyOperation):
            handle.release()

    asyncio.run(work())
    assert handle.held
    assert handle.release() is True
