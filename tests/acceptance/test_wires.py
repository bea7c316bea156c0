"""Wires that lose single replies, or stand still: never two holders, and never a wrong "refused"."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from reservable import AsyncReservation, Reservation
from reservable.backends.base import Backend
from reservable.backends.opening import Store
from reservable.testing import blocking
from tests.acceptance import workers
from tests.processes import race
from tests.proxy import Proxy
from tests.waiting import eventually

ROUNDS = 40


@pytest.fixture(params=["redis", "postgresql", "mariadb"])
def where(request: pytest.FixtureRequest, fresh_database: Callable[[str], str]) -> str:
    return fresh_database(request.param)


@pytest.fixture
def direct(where: str) -> Iterator[Backend]:
    store = Store(where)
    list(store.blocking.list())  # the table is there
    yield store.blocking
    store.close()


@pytest.fixture(params=["blocking", "asyncio"])
def colour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def port_of(where: str) -> int:
    port = make_url(where).port
    assert port is not None
    return port


def through(where: str, proxy: Proxy) -> str:
    return make_url(where).set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)


def test_single_lost_replies_never_change_an_answer(where: str, colour: str, direct: Backend):
    chance = random.Random(3)
    with Proxy(port_of(where)) as proxy:
        store = Store(through(where, proxy))
        backend = store.blocking if colour == "blocking" else blocking(store.awaited)
        assert backend.holder(workers.NAME) is None  # connected

        def asked(work: Callable[[], Any]) -> Any:
            if chance.random() < 0.7:
                proxy.drop_next_reply()
            return work()

        for _ in range(ROUNDS):
            held = Reservation(backend, workers.NAME, 60)
            assert asked(held.acquire) is True
            assert asked(lambda: held.extend(90)) is True  # noqa: B023 - called here and now
            other = Reservation(direct, workers.NAME, 60)
            assert other.acquire() is False
            assert asked(held.release) is True
            assert direct.holder(workers.NAME) is None
        assert proxy.dropped > ROUNDS
        backend.close()


def test_a_counter_stays_right_over_wires_that_lose_replies(
    where: str, colour: str, direct: Backend, tmp_path: Path
):
    (tmp_path / "counter").write_text("0")
    over = threading.Event()
    proxies = [Proxy(port_of(where)) for _ in range(3)]

    def lose() -> None:
        chance = random.Random(4)
        while not over.wait(chance.uniform(0.05, 0.4)):
            chance.choice(proxies).drop_next_reply()

    losing = threading.Thread(target=lose)
    for proxy in proxies:
        proxy.__enter__()
    losing.start()
    try:
        wheres = [through(where, proxy) for proxy in proxies]
        added = race(workers.bump, wheres, colour, str(tmp_path), 30, processes=3, within=120)
    finally:
        over.set()
        losing.join()
        for proxy in proxies:
            proxy.__exit__()
    assert sum(proxy.dropped for proxy in proxies) > 0
    assert int((tmp_path / "counter").read_text()) == sum(added)
    assert sum(added) > 0


def test_over_a_wire_that_stands_still_it_is_lost_before_anybody_else_has_it(
    where: str, colour: str, direct: Backend
):
    with Proxy(port_of(where)) as proxy:
        store = Store(through(where, proxy))
        successor = Reservation(direct, workers.NAME, 60)
        ends: dict[str, float] = {}

        def follow() -> None:
            assert successor.acquire(wait=30)
            ends["followed"] = time.monotonic()

        following = threading.Thread(target=follow)
        if colour == "blocking":
            held = Reservation(store.blocking, workers.NAME, 1.5, renew=True)
            assert held.acquire()
            following.start()
            first = held.expires_at
            eventually(lambda: held.expires_at != first)  # it is being extended
            proxy.stall()
            assert held.lost.wait(10)
            ends["lost"] = time.monotonic()
        else:

            async def story() -> None:
                held = AsyncReservation(store.awaited, workers.NAME, 1.5, renew=True)
                assert await held.acquire()
                following.start()
                first = held.expires_at
                while held.expires_at == first:
                    await asyncio.sleep(0.01)
                proxy.stall()
                async with asyncio.timeout(10):
                    await held.lost.wait()
                ends["lost"] = time.monotonic()
                proxy.cut()

            asyncio.run(story())
        following.join(30)
        assert ends["lost"] <= ends["followed"] + 0.05
        successor.check()
