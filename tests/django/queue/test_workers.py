"""Workers' loops over Django's rows, and their twins for asyncio."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import aclosing
from typing import Any

import pytest

from reservable import AsyncLease, Lease, NotClaimable, NotSupported


def models() -> Any:
    from tests.django.shop import models

    return models


def done(count: int) -> bool:
    return bool(models().Job.objects.filter(status="succeeded").count() == count)


@pytest.mark.parametrize("together", [True, False])
def test_run_works_in_threads_whose_connections_are_closed(alias: str, *, together: bool) -> None:
    from django.db import connections

    for number in range(20):
        models().Job.objects.create(title=str(number))
    used: dict[int, Any] = {}

    def handler(lease: Lease) -> None:
        models().Channel.objects.create(name=lease.row.title)
        used[threading.get_ident()] = connections[alias]

    models().Job.objects.run(
        handler, concurrency=3, batch=5, complete_in_batches=together, stop=lambda: done(20)
    )
    assert models().Channel.objects.count() == 20
    assert threading.get_ident() not in used
    assert all(one.connection is None for one in used.values())


def test_an_error_of_a_handler_is_stored_and_does_not_stop_the_others(
    alias: str, caplog: pytest.LogCaptureFixture
) -> None:
    bad = models().Job.objects.create(title="bad")
    models().Job.objects.create(title="good")

    def handler(lease: Lease) -> None:
        if lease.row.title == "bad":
            raise ZeroDivisionError("no")

    with caplog.at_level(logging.CRITICAL, "reservable"):
        models().Job.objects.run(handler, stop=lambda: done(1))
    bad.refresh_from_db()
    assert (bad.status, bad.last_error["message"]) == ("pending", "no")


def test_work_gives_back_what_was_not_begun(alias: str) -> None:
    for _ in range(3):
        models().Job.objects.create()
    for lease in models().Job.objects.work(batch=3):
        with lease:
            pass
        break
    assert models().Job.objects.status_counts()["pending"] == 2
    assert models().Job.objects.filter(attempts=0).count() == 2


def test_a_coroutine_function_is_no_handler_for_threads(sqlite: str) -> None:
    async def handler(lease: Any) -> None:
        pass

    with pytest.raises(NotSupported, match="arun"):
        models().Job.objects.run(handler)


def test_every_verb_has_a_twin(alias: str) -> None:
    objects = models().Job.objects

    async def work() -> None:
        row = models().Job()
        assert await row.aenqueue()
        [lease] = await objects.aclaim(worker="w")
        assert isinstance(lease, AsyncLease)
        await lease.update(title="a")
        await lease.heartbeat()
        await lease.release()
        async with objects.astart(row.pk) as lease:
            lease.set(title="b")
        await row.arefresh_from_db()
        assert (row.status, row.title) == ("succeeded", "b")
        assert await row.aenqueue()
        [lease] = await objects.aclaim()
        with pytest.raises(NotSupported, match="no transactions for asyncio"):
            async with lease.transaction():
                raise AssertionError
        await lease.complete()
        assert await row.aenqueue()
        assert await row.apause()
        assert await row.aresume()
        assert await row.acancel("no")
        assert await row.aretry()
        assert (await objects.astatus_counts())["pending"] == 1
        with pytest.raises(NotClaimable, match="missing"):
            async with objects.astart(0):
                raise AssertionError
        async with aclosing(objects.awork()) as leases:
            async for lease in leases:
                async with lease:
                    lease.set(title="d")
                break
        assert await objects.areap() == 0
        assert await objects.aprune(0) == 1

    asyncio.run(work())


def test_arun_works_in_tasks(alias: str) -> None:
    for number in range(10):
        models().Job.objects.create(title=str(number))

    async def handler(lease: AsyncLease) -> None:
        await models().Channel.objects.acreate(name=lease.row.title)

    async def work() -> None:
        stop = asyncio.Event()

        async def look() -> None:
            while await models().Job.objects.filter(status="succeeded").acount() < 10:
                await asyncio.sleep(0.01)
            stop.set()

        looking = asyncio.create_task(look())
        await models().Job.objects.arun(handler, concurrency=3, batch=4, stop=stop)
        await looking

    asyncio.run(work())
    assert models().Channel.objects.count() == 10


def test_a_claim_that_is_cancelled_is_given_back(alias: str) -> None:
    for number in range(20):
        models().Job.objects.create(title=str(number))

    async def work() -> None:
        for pause in range(12):
            task = asyncio.create_task(models().Job.objects.aclaim(2))
            await asyncio.sleep(pause / 500)
            task.cancel()
            try:
                for lease in await task:
                    await lease.release()
            except asyncio.CancelledError:
                pass

    asyncio.run(work())
    assert models().Job.objects.status_counts()["pending"] == 20


def test_a_verb_for_blocking_code_says_so_in_an_event_loop(sqlite: str) -> None:
    from django.core.exceptions import SynchronousOnlyOperation

    row = models().Job.objects.create()

    async def work() -> None:
        for verb in (
            models().Job.objects.claim,
            row.pause,
            row.enqueue,
            lambda: next(models().Job.objects.work()),
        ):
            with pytest.raises(SynchronousOnlyOperation):
                verb()

    asyncio.run(work())
    row.refresh_from_db()
    assert row.status == "pending"
