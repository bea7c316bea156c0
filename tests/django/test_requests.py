from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from reservable import BackendError
from tests.django.project import database, pointed
from tests.django.serving import serve
from tests.processes import Worker

pytestmark = pytest.mark.usefixtures("clean")

SERVERS = ["postgresql", "mariadb"]


@pytest.fixture
def client(project: object) -> Any:
    from django.test import Client

    return Client()


@pytest.fixture(params=SERVERS)
def atomic_requests(
    request: pytest.FixtureRequest, project: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    if request.param not in project:
        request.getfixturevalue(f"{request.param}_url")
    from django.db import connections

    monkeypatch.setitem(connections.settings[request.param], "ATOMIC_REQUESTS", True)
    with pointed(writes=request.param):
        yield request.param


def video() -> Any:
    from tests.django.shop.models import Video

    return Video.objects.create()


def test_a_request_in_a_transaction_reserves_and_is_refused(client: Any, atomic_requests: str) -> None:
    one = video()
    assert client.get(f"/reserve/{one.pk}").content == b"True"
    assert client.get(f"/reserve/{one.pk}").content == b"False"


def test_a_request_that_is_rolled_back_leaves_its_reservation(client: Any, atomic_requests: str) -> None:
    one = video()
    with pytest.raises(ZeroDivisionError):
        client.get(f"/fail/{one.pk}")
    assert one.is_reserved("download")


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("mode", ["DEFERRED", "IMMEDIATE"])
def test_sqlite_in_a_transaction_reserves_or_says_at_once_why_not(
    client: Any, monkeypatch: pytest.MonkeyPatch, journal: str, mode: str, sqlite: str
) -> None:
    from django.db import connection, connections

    one = video()
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA journal_mode = {journal}")
    connection.close()
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    monkeypatch.setitem(connections.settings["default"]["OPTIONS"], "transaction_mode", mode)
    try:
        began = time.monotonic()
        if (journal, mode) == ("wal", "DEFERRED"):
            assert client.get(f"/reserve/{one.pk}").content == b"True"
        else:
            with pytest.raises(BackendError, match="database of their own by a router"):
                client.get(f"/reserve/{one.pk}")
        assert time.monotonic() - began < 2
        with pointed(reservations="other"):
            assert client.get(f"/reserve/{one.pk}").content == b"True"
    finally:
        connection.close()
        monkeypatch.undo()
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA journal_mode = delete")


def test_async_views_reserve_and_refuse_the_blocking_calls(alias: str) -> None:
    import asyncio

    from django.core.exceptions import SynchronousOnlyOperation
    from django.test import AsyncClient

    one = video()

    async def requests() -> None:
        client = AsyncClient()
        with pytest.raises(SynchronousOnlyOperation, match="areserve"):
            await client.get(f"/wrongly/{one.pk}")
        assert (await client.get(f"/areserve/{one.pk}")).content == b"True"
        assert (await client.get(f"/areserve/{one.pk}")).content == b"False"

    asyncio.run(requests())


def test_persistent_connections_are_used_again(
    alias: str, project: Any, monkeypatch: pytest.MonkeyPatch, client: Any
) -> None:
    from django.db import connections

    one = video()
    connections[alias].close()
    monkeypatch.setitem(connections.settings[alias], "CONN_MAX_AGE", None)
    one.reserve("a")
    driver = connections[alias].connection
    assert client.get(f"/reserve/{one.pk}").content == b"True"
    one.reserve("b")
    assert connections[alias].connection is driver


@pytest.mark.parametrize("use_tz", [True, False])
def test_time_zones_are_nothing_to_a_reservation(alias: str, use_tz: bool) -> None:
    from datetime import UTC, datetime, timedelta

    from django.db import connections
    from django.test import override_settings

    one = video()
    connections[alias].close()
    with override_settings(USE_TZ=use_tz, TIME_ZONE="Pacific/Kiritimati"):
        with one.reservation("k", "1h") as held:
            assert held.expires_at.tzinfo is UTC
            assert abs(held.expires_at - datetime.now(UTC) - timedelta(hours=1)) < timedelta(seconds=5)
        assert type(one).objects.first_reserved("k", datetime.now(UTC) + timedelta(minutes=1)) == one
    connections[alias].close()


class Site:
    """A web server whose every request is a transaction on one SQLite file; asked from threads."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._port = worker.hear(within=60)

    def get(self, path: str) -> str:
        with urlopen(f"http://127.0.0.1:{self._port}/{path}", timeout=60) as answer:
            return str(answer.read().decode())


@contextmanager
def atomic_site(folder: Path, journal: str, mode: str) -> Iterator[Site]:
    first = f"PRAGMA journal_mode = {journal}; PRAGMA synchronous = OFF"
    default = database(
        f"sqlite:///{folder / 'site.sqlite'}", init_command=first, transaction_mode=mode, timeout=30
    )
    with Worker(serve, {"default": default | {"ATOMIC_REQUESTS": True}}) as worker:
        yield Site(worker)


@pytest.mark.parametrize(
    ("journal", "mode", "first", "second"),
    [
        ("wal", "DEFERRED", "hold/a?read", "reserve/b?read"),
        ("delete", "DEFERRED", "hold/a", "reserve/b"),
        ("wal", "IMMEDIATE", "plain/hold/a?read", "plain/reserve/b?read"),
        ("delete", "IMMEDIATE", "plain/hold/a?read", "plain/reserve/b?read"),
    ],
)
def test_a_request_reserves_while_another_that_has_reserved_goes_on(
    tmp_path: Path, journal: str, mode: str, first: str, second: str
) -> None:
    with atomic_site(tmp_path, journal, mode) as site, ThreadPoolExecutor(1) as pool:
        slow = pool.submit(site.get, first)
        assert site.worker.hear(within=30) == "True"
        assert site.get(second) == "True"
        assert not slow.done()
        assert site.get(second) == "False"
        site.get("let-go")
        assert slow.result(timeout=30) == "True"


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_requests_that_lock_the_file_at_once_are_told_why_they_cannot_reserve(
    tmp_path: Path, journal: str
) -> None:
    with atomic_site(tmp_path, journal, "IMMEDIATE") as site, ThreadPoolExecutor(4) as pool:
        began = time.monotonic()
        answers = [*pool.map(site.get, [f"reserve/{key}" for key in "abcd"])]
        assert time.monotonic() - began < 20  # a quarter of a second for each, one after the other
        for answer in answers:
            assert answer.startswith("BackendError: ")
            assert "database of their own by a router" in answer
        assert site.get("plain/reserve/a") == "True"
