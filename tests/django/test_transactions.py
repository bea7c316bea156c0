from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import pytest

from reservable import BackendError
from tests.django.project import pointed

pytestmark = pytest.mark.usefixtures("project")

Videos = Callable[[int], list[Any]]


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest, clean: None, project: Any) -> Any:
    """A database whose writers do not exclude each other."""
    if request.param not in project:
        request.getfixturevalue(f"{request.param}_url")
    with pointed(writes=request.param):
        yield request.param


def video() -> Any:
    from tests.django.shop.models import Video

    return Video.objects.create()


def same(one: Any) -> Any:
    return type(one)(pk=one.pk)


def test_a_rollback_leaves_the_reservation_and_the_handle_knows(server: str) -> None:
    from django.db import transaction

    one = video()
    with pytest.raises(ZeroDivisionError), transaction.atomic(using=server):
        assert one.reserve("k", "1h")
        raise ZeroDivisionError
    assert one.reservation("k").held
    assert same(one).reserve("k") is False
    assert one.release("k") is True


def test_a_savepoint_that_is_rolled_back_is_nothing_to_a_reservation(server: str) -> None:
    from django.db import transaction

    one = video()
    with transaction.atomic(using=server):
        with pytest.raises(ZeroDivisionError), transaction.atomic(using=server):
            assert one.reserve("k", "1h")
            raise ZeroDivisionError
        assert one.is_reserved("k")
    assert one.release("k") is True


def test_a_refusal_inside_a_transaction_does_not_harm_it(server: str) -> None:
    from django.db import transaction

    one = video()
    assert same(one).reserve("k", "1h")
    with transaction.atomic(using=server):
        one.title = "before"
        one.save()
        assert one.reserve("k") is False
        assert type(one).objects.first_reserved("k") is None
        assert not transaction.get_connection(server).needs_rollback
        one.title = "after"
        one.save()
    one.refresh_from_db()
    assert one.title == "after"


def test_inside_a_transaction_it_is_there_for_others_at_once(server: str) -> None:

    from django.db import connections, transaction

    one = video()

    def elsewhere() -> bool:
        try:
            return bool(same(one).reserve("k"))
        finally:
            connections.close_all()

    with transaction.atomic(using=server), ThreadPoolExecutor(1) as pool:
        assert one.reserve("k")
        assert pool.submit(elsewhere).result() is False
        assert one.release("k")


def test_released_when_the_transaction_is_committed(server: str) -> None:
    from django.db import transaction

    one, released = video(), []
    with transaction.atomic(using=server):
        assert one.reserve("k")
        transaction.on_commit(lambda: released.append(one.release("k")), using=server)
        assert one.is_reserved("k")
    assert released == [True]


def test_manual_transactions_are_left_alone_too(server: str) -> None:
    from django.db import transaction

    one = video()
    transaction.set_autocommit(False, using=server)
    try:
        assert one.reserve("k")
        transaction.rollback(using=server)
        assert same(one).reserve("k") is False
    finally:
        transaction.rollback(using=server)
        transaction.set_autocommit(True, using=server)


def test_an_old_snapshot_is_not_believed(server: str) -> None:

    from django.db import connections, transaction

    one = video()
    model = type(one)
    other = video()

    def finish() -> None:
        try:
            model.objects.filter(pk=one.pk).update(path="done", title="new")
            model.objects.filter(pk=other.pk).update(title="new")
        finally:
            connections.close_all()

    connection = connections[server]
    before = dict(connection.settings_dict["OPTIONS"])
    connection.close()
    level: Any = "repeatable read"
    if server == "postgresql":
        from psycopg import IsolationLevel

        level = IsolationLevel.REPEATABLE_READ
    connection.settings_dict["OPTIONS"] = {**before, "isolation_level": level}
    try:
        with transaction.atomic(using=server):
            assert model.objects.filter(path="").count() == 2
            with ThreadPoolExecutor(1) as pool:
                pool.submit(finish).result()
            assert model.objects.filter(path="").count() == 2
            found = model.objects.filter(path="").first_reserved("k")
            assert found == other
            assert found.title == "new"
            assert found._state.db == server
            assert not same(one).is_reserved("k")
    finally:
        connection.close()
        connection.settings_dict["OPTIONS"] = before


def test_sqlite_says_at_once_that_the_callers_own_write_is_in_the_way(sqlite: str) -> None:
    from django.db import transaction

    one = video()
    with transaction.atomic():
        one.title = "written"
        one.save()
        for ask in (lambda: one.reserve("k"), lambda: type(one).objects.first_reserved("k")):
            asked = time.monotonic()
            with pytest.raises(BackendError, match="before the atomic block"):
                ask()
            assert time.monotonic() - asked < 2
    one.refresh_from_db()
    assert one.title == "written"
    assert one.reserve("k")


@pytest.mark.parametrize(
    ("journal", "does"), [("delete", "nothing"), ("delete", "nests"), ("wal", "nothing"), ("wal", "reads")]
)
def test_sqlite_waits_for_a_neighbour_who_writes_though_a_transaction_is_open_here(
    sqlite: str, journal: str, does: str
) -> None:
    from django.db import connection, transaction

    from reservable.django.companions import close_all

    one = video()
    written = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as neighbour:
            neighbour.execute("BEGIN IMMEDIATE")
            neighbour.execute("UPDATE shop_video SET title = 'by a neighbour'")
            written.set()
            time.sleep(0.6)  # twice as long as it takes to look once
            neighbour.execute("COMMIT")

    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA journal_mode = {journal}")
    try:
        with ThreadPoolExecutor(1) as pool, ExitStack() as blocks:
            blocks.enter_context(transaction.atomic())
            if does == "nests":
                blocks.enter_context(transaction.atomic())
            elif does == "reads":
                assert type(one).objects.count() == 1
            neighbour = pool.submit(write)
            assert written.wait(5)
            assert one.reserve("k") is True
            neighbour.result()
    finally:
        close_all()
        connection.close()
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA journal_mode = delete")


def test_what_others_instrument_on_sqlite_ends_with_their_block(sqlite: str) -> None:
    from django.db import connection

    from reservable.django.locking import Witness

    def own(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        return execute(sql, params, many, context)

    connection.close()
    connection.execute_wrappers.clear()
    with connection.execute_wrapper(own):
        video()  # connects, inside the block
    assert [type(left) for left in connection.execute_wrappers] == [Witness]


def test_sqlite_knows_of_what_an_operators_verb_has_written(sqlite: str) -> None:
    from django.db import transaction

    from tests.django.shop.models import Job

    one, job = video(), Job.objects.create()
    with transaction.atomic():
        assert job.pause()
        asked = time.monotonic()
        with pytest.raises(BackendError, match="before the atomic block"):
            one.reserve("k")
        assert time.monotonic() - asked < 2
    with transaction.atomic():  # of this one nothing is in the way
        assert one.reserve("k")


def test_sqlite_beside_a_database_of_its_own_works_in_every_transaction(sqlite: str) -> None:
    from django.db import transaction

    one = video()
    with pointed(reservations="other"), transaction.atomic():
        one.title = "written"
        one.save()
        assert one.reserve("k")
        assert same(one).reserve("k") is False
        assert type(one).objects.first_reserved("k") is None
        assert one.release("k")


def test_a_companion_is_closed_with_the_request(server: str) -> None:
    from django.core.signals import request_finished
    from django.db import close_old_connections, transaction

    from reservable.django.companions import _here

    one = video()
    with transaction.atomic(using=server):
        one.reserve("k")
    companion = _here.companions[server]
    assert companion.connection is not None
    request_finished.disconnect(close_old_connections)  # as Django's own test client does
    try:
        request_finished.send(sender=None)
    finally:
        request_finished.connect(close_old_connections)
    assert companion.connection is None
    with transaction.atomic(using=server):
        assert one.release("k")


def test_a_companion_is_closed_along_with_djangos_own_connection(server: str) -> None:
    from django.db import connections, transaction

    from reservable.django.companions import _here

    one = video()
    for _ in range(2):
        with transaction.atomic(using=server):
            one.reserve("k")
        assert _here.companions[server].connection is not None
        connections[server].close()
        assert _here.companions[server].connection is None
    assert one.release("k")


def test_however_many_companions_there_were_closing_is_one_step(server: str) -> None:
    from django.db import connections, transaction

    from reservable.django.companions import _here

    one = video()
    closes = set()
    for _ in range(3):
        _here.companions.clear()  # as in threads that share a connection, one after the other
        with transaction.atomic(using=server):
            one.is_reserved("k")
        closes.add(connections[server].close)
        connections[server].close()
        assert _here.companions[server].connection is None
    assert len(closes) == 1


def test_connections_that_the_server_cut_are_no_trouble(server: str) -> None:
    from django.db import connections, transaction

    one = video()

    def cut(driver: Any) -> None:
        administrator = connections[server].copy()
        with administrator.cursor() as cursor:
            if server == "postgresql":
                cursor.execute("SELECT pg_terminate_backend(%s)", [driver.info.backend_pid])
            else:
                cursor.execute(f"KILL {driver.thread_id()}")
        administrator.close()

    from reservable.django.companions import _here

    assert one.reserve("a")
    cut(connections[server].connection)
    assert one.reserve("b")
    with transaction.atomic(using=server):
        assert one.reserve("c")
        cut(_here.companions[server].connection)
        assert one.reserve("d")
    assert len([*one.reservation("a").backend.list(f"shop.video:{one.pk}:*")]) == 4
