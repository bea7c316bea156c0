"""What a worker of gevent's does with Django: patched before anything else is imported, in a process of its own.

python -m tests.django.greenlets race '{"databases": {...}, "alias": "default", "url": null}'
"""

# ruff: noqa: E402 - what is imported before the patch would not be patched
from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import json
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import gevent
from gevent.event import Event

from reservable import ReservationLost
from tests.django.project import Router, configure
from tests.waiting import eventually

WITHIN = 60
"""Seconds for a greenlet to come to its end, on a machine that has much to do."""


def closing(work: Callable[..., Any], *arguments: Any) -> Any:
    """Call it as a request is: what its greenlet has opened is closed behind it."""
    from django.db import connections

    from reservable.django.companions import close_all

    try:
        return work(*arguments)
    finally:
        close_all()
        connections.close_all()


def race() -> None:
    """Of many greenlets that reserve at once, one is granted."""
    from django.db.transaction import atomic

    from tests.django.shop.models import Video

    pk = Video.objects.create().pk
    ready = Event()

    def reserve(key: str, *, in_a_transaction: bool) -> Any:
        ready.wait()
        if in_a_transaction:
            with atomic(using=Router.writes):
                return Video(pk=pk).reserve(key, "1h")
        return Video.objects.get(pk=pk).reserve(key, "1h")

    for number in range(5):
        ready.clear()
        for in_a_transaction in (False, True):
            key = f"{number}{in_a_transaction}"
            racing = [
                gevent.spawn(
                    closing, lambda key=key, inside=in_a_transaction: reserve(key, in_a_transaction=inside)
                )
                for _ in range(8)
            ]
            gevent.sleep(0)
            ready.set()
            assert sorted(one.get(timeout=WITHIN) for one in racing) == [False] * 7 + [True]


def wait() -> None:
    """Whoever waits is woken by the release, and the other greenlets go on meanwhile."""
    from tests.django.shop.models import Video

    holder = Video.objects.create()
    assert holder.reserve("k", "1h")
    with ticking() as ticks:
        waiting = gevent.spawn(closing, lambda: Video.objects.get().reserve("k", "1h", wait=WITHIN))
        begun = len(ticks)
        eventually(lambda: len(ticks) > begun + 20)
        assert not waiting.ready()
        assert holder.release("k")
        assert waiting.get(timeout=WITHIN) is True
    assert holder.is_reserved("k")


def renew() -> None:
    """A reservation is kept for as long as its block takes; that another is lost is told once."""
    from tests.django.shop.models import Video

    video = Video.objects.create()
    told: list[Any] = []
    with ticking() as ticks, video.reservation("kept", 2, renew=True, on_lost=told.append) as kept:
        begun = len(ticks)
        outlast(kept)
        assert not Video.objects.get().reserve("kept")
        lost = video.reservation("lost", 2, renew=True, on_lost=told.append)
        try:
            with lost:
                assert Video.objects.get().reservation("lost").break_()
                assert lost.lost.wait(WITHIN)
                eventually(lambda: told)
                outlast(kept)
        except ReservationLost:
            assert told == [lost]
        else:
            raise AssertionError("the loss was not told at the end of the block")
        assert len(ticks) > begun + 20
        assert kept.held
    assert not video.is_reserved("kept")
    assert told == [lost]


def outlast(held: Any) -> None:
    """Wait until it has been renewed after its end, as that is now: two seconds, which a busy machine does not miss."""
    end = held.expires_at
    eventually(lambda: held.expires_at > end + timedelta(seconds=2), within=WITHIN)


def queue() -> None:
    """Every row is worked on once, several at a time; a long one is kept; the worker stops when it is told."""
    from tests.django.shop.models import Job, Kept

    Job.objects.bulk_create([Job(title=str(number)) for number in range(20)])
    stop, done, here = threading.Event(), [], [0, 0]

    def handle(lease: Any) -> None:
        here[0] += 1
        here[1] = max(here)
        gevent.sleep(0.02)
        lease.set(title=f"{lease.row.title}!")
        done.append(lease.row.pk)
        here[0] -= 1

    with ticking() as ticks:
        working = gevent.spawn(
            closing, lambda: Job.objects.run(handle, concurrency=4, batch=5, stop=stop, idle=0.2)
        )
        eventually(lambda: len(done) == 20 or working.ready(), within=WITHIN)
        begun = len(ticks)
        eventually(lambda: len(ticks) > begun + 20)  # it has nothing to do, and others have
        assert not working.ready()
        stop.set()
        working.get(timeout=WITHIN)
    assert 1 < here[1] <= 4
    assert sorted(done) == sorted(
        Job.objects.filter(status="succeeded", attempts=1).values_list("pk", flat=True)
    )
    assert sorted(Job.objects.values_list("title", flat=True)) == sorted(f"{number}!" for number in range(20))

    row = Kept.objects.create()
    with Kept.objects.start(row.pk) as lease:
        outlast(lease)
        assert Kept.objects.claim() == []
    row.refresh_from_db()
    assert (row.status, row.attempts) == ("succeeded", 1)


@contextmanager
def ticking() -> Any:
    """Another greenlet, which grows a list while it is let."""
    ticks: list[int] = []

    def tick() -> None:
        while True:
            ticks.append(len(ticks))
            gevent.sleep(0.01)

    ticker = gevent.spawn(tick)
    try:
        yield ticks
    finally:
        ticker.kill()


def main() -> None:
    what, said = sys.argv[1:]
    where = json.loads(said)
    more = {} if where["url"] is None else {"RESERVABLE": {"URL": where["url"]}}
    configure(where["databases"], **more)
    Router.writes = where["alias"]
    closing({"race": race, "wait": wait, "renew": renew, "queue": queue}[what])
    print("well")


if __name__ == "__main__":
    main()
