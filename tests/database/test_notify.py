"""PostgreSQL wakes waiters: at once when the name is released or broken, and when its holder's time is over."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any, ClassVar

import psycopg
import pytest
from sqlalchemy import Engine, make_url
from sqlalchemy.ext.asyncio import create_async_engine

from reservable.backends.database import AsyncDatabaseBackend, DatabaseBackend
from reservable.errors import ConfigurationError, NotSupported
from reservable.grants import Released
from tests.database.notified import MINUTE, NAME
from tests.database.workers import release_in_turn
from tests.pausing import SLACK, later, took
from tests.processes import Worker

Make = Callable[..., Engine]
Fresh = Callable[[str], str]


class Recorded(psycopg.Cursor[Any]):
    """Remembers the statements that were sent."""

    sent: ClassVar[list[str]] = []

    def execute(self, query: Any, *arguments: Any, **options: Any) -> Any:
        self.sent.append(query)
        return super().execute(query, *arguments, **options)


def test_what_is_free_is_not_waited_for(waiter: Any) -> None:
    assert waiter.acquire(NAME, "W", "waiter", MINUTE)
    assert waiter.release(NAME, "W") is Released.YES
    with waiter.watch(NAME) as watch:
        for _ in range(3):
            assert took(watch.pause, 5) < SLACK


def test_a_release_in_another_process_wakes_at_once(url: str, waiter: Any) -> None:
    rounds = 40
    latencies = []
    with Worker(release_in_turn, url, rounds, 0.03, 0.03) as other:
        for number in range(rounds):
            assert other.hear(30) == number
            with waiter.watch(NAME) as watch:
                while waiter.acquire(NAME, f"W{number}", "waiter", MINUTE) is None:
                    watch.pause(10)
                granted = time.time()
            latencies.append(granted - other.hear(30))
            waiter.release(NAME, f"W{number}")
    assert (
        statistics.median(latencies) < 1
    )  # not told, it would look again after 5; the benchmarks have the figure


@pytest.mark.parametrize("verb", ["release", "break_"])
def test_a_pause_without_a_limit_ends_with_the_reservation(
    waiter: Any, holder: DatabaseBackend, verb: str
) -> None:
    ends: dict[str, Callable[[], Any]] = {
        "release": lambda: holder.release(NAME, "H"),
        "break_": lambda: holder.break_(NAME),
    }
    with waiter.watch(NAME) as watch, later(ends[verb], 0.2):
        assert 0.1 < took(watch.pause, math.inf) < 0.2 + SLACK
        assert waiter.holder(NAME) is None


def test_another_name_and_another_prefix_wake_nobody(
    url: str, waiter: Any, holder: DatabaseBackend, make_engine: Make
) -> None:
    elsewhere = DatabaseBackend(make_engine(url), "other:", notify=True)
    assert holder.acquire("videos:2:download", "H", "holder", MINUTE)
    assert elsewhere.acquire(NAME, "H", "holder", MINUTE)

    def release() -> None:
        holder.release("videos:2:download", "H")
        holder.release(NAME, "stale")
        elsewhere.release(NAME, "H")

    with waiter.watch(NAME) as watch, later(release, 0.1):
        assert took(watch.pause, 0.6) >= 0.599
    elsewhere.close()


def test_a_pause_lasts_as_long_as_asked_and_no_longer_than_that(waiter: Any, holder: DatabaseBackend) -> None:
    with waiter.watch(NAME) as watch:
        for seconds in (0, 0.001, 0.01, 0.5):
            assert took(watch.pause, seconds) < seconds + SLACK
        assert 0.499 <= took(watch.pause, 0.5) < 0.5 + SLACK


def test_the_end_of_the_holder_s_time_wakes(waiter: Any, holder: DatabaseBackend) -> None:
    holder.extend(NAME, "H", timedelta(seconds=0.4))
    with waiter.watch(NAME) as watch:
        assert 0.2 < took(watch.pause, 10) < 0.4 + SLACK
        assert waiter.acquire(NAME, "W", "waiter", MINUTE)


def test_a_holder_who_renews_is_waited_for_to_its_last_end(waiter: Any, holder: DatabaseBackend) -> None:
    holder.extend(NAME, "H", timedelta(seconds=0.4))
    with waiter.watch(NAME) as watch, later(lambda: holder.extend(NAME, "H", timedelta(seconds=1)), 0.2):
        assert 1.0 < took(watch.pause, 10) < 1.2 + SLACK
        assert waiter.acquire(NAME, "W", "waiter", MINUTE)


def test_a_holder_who_renewed_and_then_releases_wakes_at_once(waiter: Any, holder: DatabaseBackend) -> None:
    holder.extend(NAME, "H", timedelta(seconds=0.3))

    def renew_and_release() -> None:
        holder.extend(NAME, "H", MINUTE)
        time.sleep(0.5)  # past the end that the waiter knew of
        holder.release(NAME, "H")

    with waiter.watch(NAME) as watch, later(renew_and_release, 0.1):
        assert 0.5 < took(watch.pause, 10) < 0.6 + SLACK


def test_no_release_is_lost_while_a_pause_begins(url: str, waiter: Any) -> None:
    rounds = 300
    with Worker(release_in_turn, url, rounds, 0.0, 0.012) as other:
        for number in range(rounds):
            assert other.hear(30) == number
            began = time.monotonic()
            with waiter.watch(NAME) as watch:
                watch.pause(30)
                while waiter.acquire(NAME, f"W{number}", "waiter", MINUTE) is None:
                    watch.pause(30)
            assert time.monotonic() - began < 4  # after 5 s it would look again by itself
            other.hear(30)
            assert waiter.release(NAME, f"W{number}") is Released.YES


def test_a_release_that_tells_is_one_statement(
    url: str, make_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(
        DatabaseBackend(make_engine(url, connect_args={"cursor_factory": Recorded}), notify=True)
    ) as backend:
        for end in (lambda: backend.release(NAME, "H"), lambda: backend.break_(NAME)):
            assert backend.acquire(NAME, "H", "holder", MINUTE)
            monkeypatch.setattr(Recorded, "sent", [])
            assert end()
            assert len(Recorded.sent) == 1
            assert Recorded.sent[0].startswith("UPDATE")


def test_released_and_not_held_and_held_by_another_are_told_apart(waiter: Any) -> None:
    assert waiter.release(NAME, "W") is Released.NOT_HELD
    assert waiter.acquire(NAME, "W", "waiter", MINUTE)
    assert waiter.release(NAME, "other") is Released.BY_ANOTHER
    assert waiter.release(NAME, "W") is Released.YES
    assert not waiter.break_(NAME)
    assert waiter.acquire(NAME, "W", "waiter", MINUTE)
    assert waiter.break_(NAME)


def test_it_is_declared_and_refused_where_it_is_not(url: str, make_engine: Make) -> None:
    silent, telling = DatabaseBackend(make_engine(url)), DatabaseBackend(make_engine(url), notify=True)
    assert (silent.notify, silent.capabilities.tells) == (False, False)
    assert (telling.notify, telling.capabilities.tells) == (True, True)
    with pytest.raises(NotSupported, match="notify=True"):
        silent.watch(NAME)


@pytest.mark.parametrize("kind", ["sqlite", "mariadb"])
def test_other_databases_are_refused(kind: str, fresh_database: Fresh, make_engine: Make) -> None:
    with pytest.raises(ConfigurationError, match=rf"PostgreSQL.*{kind}"):
        DatabaseBackend(make_engine(fresh_database(kind)), notify=True)
    address = make_url(fresh_database(kind))
    driver = {"sqlite": "aiosqlite", "mariadb": "aiomysql"}[kind]
    engine = create_async_engine(address.set(drivername=f"{kind}+{driver}"))
    with pytest.raises(ConfigurationError, match=rf"PostgreSQL.*{kind}"):
        AsyncDatabaseBackend(engine, notify=True)


def test_a_driver_that_cannot_listen_is_refused(
    url: str, make_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(url)
    monkeypatch.setattr(engine.dialect, "driver", "pg8000")
    with pytest.raises(ConfigurationError, match=r"pg8000.*psycopg or psycopg2"):
        DatabaseBackend(engine, notify=True)
