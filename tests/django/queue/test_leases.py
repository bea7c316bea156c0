"""A lease on a row of Django's: its verbs, its transaction, and the transactions around it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from reservable import BackendError, LeaseLost, NotSupported
from tests.waiting import eventually


def models() -> Any:
    from tests.django.shop import models

    return models


def test_a_lease_is_kept_alive_in_its_block(alias: str) -> None:
    row = models().Kept.objects.create()
    with models().Kept.objects.start(row.pk) as lease:
        first = lease.expires_at
        eventually(lambda: lease.expires_at > first)
        time.sleep(2.5)  # longer than the lease
        assert models().Kept.objects.claim() == []
        assert not lease.lost.is_set()
    row.refresh_from_db()
    assert row.status == "succeeded"


def test_a_stale_worker_changes_nothing(alias: str) -> None:
    row = models().Job.objects.create()
    [lease] = models().Job.objects.claim()
    assert row.pause()
    row.resume()
    [other] = models().Job.objects.claim()
    for write in (lease.complete, lease.heartbeat, lambda: lease.update(title="x"), lambda: lease.fail("no")):
        with pytest.raises(LeaseLost):
            write()
    with pytest.raises(LeaseLost), lease.transaction() as mine:
        mine.title = "x"
        mine.save()
    other.complete(title="y")
    row.refresh_from_db()
    assert (row.status, row.title, row.attempts) == ("succeeded", "y", 1)


def test_values_are_stored_as_django_stores_them(alias: str) -> None:
    channel = models().Channel.objects.create(name="x")
    row = models().Job.objects.create()
    [lease] = models().Job.objects.claim()
    lease.update(channel=channel)
    lease.complete(title="t")
    row.refresh_from_db()
    assert (row.channel, row.title) == (channel, "t")
    kept = models().Kept.objects.create()
    with models().Kept.objects.start(kept.pk) as held:
        held.set(data={"a": [1, None, "ü"]})
    kept.refresh_from_db()
    assert kept.data == {"a": [1, None, "ü"]}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"status": "x"}, "use the queue's verbs"),
        ({"id": 3}, "use the queue's verbs"),
        ({"nothing": 3}, "no column"),
    ],
)
def test_what_is_not_a_workers_is_refused(sqlite: str, values: dict[str, Any], message: str) -> None:
    models().Job.objects.create()
    [lease] = models().Job.objects.claim()
    with pytest.raises(NotSupported, match=message):
        lease.update(**values)
    lease.complete()


def test_an_expression_is_refused(sqlite: str) -> None:
    from django.db.models import F

    models().Job.objects.create()
    [lease] = models().Job.objects.claim()
    with pytest.raises(NotSupported, match="plain values"):
        lease.complete(title=F("title"))
    lease.complete()


def test_a_transaction_commits_the_workers_writes_and_the_completion_together(alias: str) -> None:
    from django.db.models import Value
    from django.db.models.functions import Concat

    row = models().Job.objects.create(title="a")
    [lease] = models().Job.objects.claim()
    with lease.transaction() as mine:
        mine.title = Concat("title", Value("b"))
        mine.save()
        models().Channel.objects.create(name="made")
        lease.set(channel=None)
    row.refresh_from_db()
    assert (row.status, row.title, models().Channel.objects.count()) == ("succeeded", "ab", 1)
    assert lease.finished


def test_a_transaction_that_raises_rolls_both_back(alias: str) -> None:
    row = models().Job.objects.create()
    [lease] = models().Job.objects.claim()
    with pytest.raises(ZeroDivisionError), lease.transaction() as mine:
        mine.title = "x"
        mine.save()
        raise ZeroDivisionError
    row.refresh_from_db()
    assert (row.status, row.title) == ("running", "")
    lease.complete()


def test_a_row_may_be_deleted_in_its_transaction(alias: str) -> None:
    for delete in (lambda row: row.delete(), lambda row: type(row).objects.filter(pk=row.pk).delete()):
        models().Job.objects.create()
        [lease] = models().Job.objects.claim()
        with lease.transaction() as mine:
            delete(mine)
        assert lease.finished
        assert not models().Job.objects.exists()


def test_a_transaction_inside_another_one_is_refused(alias: str) -> None:
    from django.db import transaction

    models().Job.objects.create()
    [lease] = models().Job.objects.claim()
    with transaction.atomic(using=alias):
        with pytest.raises(NotSupported, match="outside atomic"), lease.transaction():
            raise AssertionError
        with pytest.raises(NotSupported, match="no session"), lease.transaction(object()):
            raise AssertionError
    lease.complete()


@pytest.mark.parametrize("alias", ["postgresql", "mariadb"], indirect=True)
def test_a_claim_is_outside_the_transaction_that_is_open(alias: str) -> None:
    from django.db import transaction

    row = models().Job.objects.create()
    with pytest.raises(ZeroDivisionError), transaction.atomic(using=alias):
        models().Job.objects.count()  # what this transaction sees is from now
        [lease] = models().Job.objects.claim()
        assert lease.row.attempts == 1
        raise ZeroDivisionError
    row.refresh_from_db()
    assert row.status == "running"
    lease.complete()


def test_a_claim_beside_a_write_to_the_same_sqlite_file_is_told_at_once(sqlite: str) -> None:
    from django.db import transaction

    models().Job.objects.create()
    with transaction.atomic():
        models().Job.objects.create()
        with pytest.raises(BackendError, match="atomic block"):
            models().Job.objects.claim()
    assert len(models().Job.objects.claim(5)) == 2


def test_an_operators_verb_commits_with_the_transaction(alias: str) -> None:
    from django.db import transaction

    row = models().Job.objects.create()
    with pytest.raises(ZeroDivisionError), transaction.atomic(using=alias):
        assert row.cancel("no use")
        models().Job().enqueue("1 hour")
        raise ZeroDivisionError
    [row] = models().Job.objects.all()
    assert (row.status, row.errors) == ("pending", [])
    with transaction.atomic(using=alias):
        assert row.cancel("no use")
        assert not row.cancel()
    assert row.last_error["message"] == "no use"
    assert row.retry()
    assert (row.status, row.attempts, row.finished_at) == ("pending", 0, None)


def test_a_foreign_key_by_another_column(alias: str) -> None:
    shelf = models().Shelf.objects.create(code="abc")
    item = models().Item.objects.create()
    [lease] = models().Item.objects.claim()
    lease.complete(shelf=shelf)
    item.refresh_from_db()
    assert item.shelf == shelf


def test_what_raises_when_it_is_committed_takes_nothing_back(alias: str) -> None:
    from django.db import transaction

    def fail() -> None:
        raise ZeroDivisionError

    row = models().Job.objects.create()
    [lease] = models().Job.objects.claim()
    with pytest.raises(ZeroDivisionError), lease.transaction():
        transaction.on_commit(fail, using=alias)
    assert lease.finished
    assert not lease.lost.is_set()
    row.refresh_from_db()
    assert row.status == "succeeded"


@pytest.mark.parametrize("alias", ["postgresql", "mariadb"], indirect=True)
def test_pruning_is_beside_the_transaction_and_spares_what_was_queued_again(alias: str) -> None:
    from django.db import transaction
    from django.db.models.signals import pre_delete

    job = models().Job
    first, second = (job.objects.create() for _ in range(2))
    for lease in job.objects.claim(2):
        lease.cancel()
    first.refresh_from_db()
    with transaction.atomic(using=alias):
        assert first.retry()
        with pytest.raises(ZeroDivisionError), transaction.atomic(using=alias):
            assert job.objects.prune(0) == 1  # the other one: this one is locked
            raise ZeroDivisionError
    assert [*job.objects.all()] == [first]
    assert first.cancel()
    told: list[Any] = []
    receiver = lambda instance, **_: told.append(instance.pk)  # noqa: E731 - a receiver
    pre_delete.connect(receiver, sender=job, weak=False)
    try:
        assert job.objects.prune(0) == 1
    finally:
        pre_delete.disconnect(receiver, sender=job)
    assert told == [first.pk]
    assert second.pk


@pytest.mark.parametrize("alias", ["postgresql"], indirect=True)
def test_an_operators_verb_finds_its_way_back_after_an_outage(alias: str) -> None:
    from django.db import connections

    row = models().Job.objects.create()
    connections[alias].settings_dict["CONN_HEALTH_CHECKS"] = True
    try:
        connections[alias].close()
        connections[alias].ensure_connection()
        connections[alias].health_check_enabled = True
        connections[alias].health_check_done = False
        connections[alias].connection.close()
        assert row.pause()
    finally:
        connections[alias].settings_dict["CONN_HEALTH_CHECKS"] = False
        connections[alias].close()


def test_an_operators_verb_is_refused_in_a_transaction_that_is_lost(alias: str) -> None:
    from django.db import transaction

    row = models().Job.objects.create()
    with transaction.atomic(using=alias):
        transaction.set_rollback(True, using=alias)
        with pytest.raises(transaction.TransactionManagementError):
            row.pause()
    row.refresh_from_db()
    assert row.status == "pending"


def test_every_name_is_quoted(sqlite: str) -> None:
    from reservable.django.queue.queues import queue_of

    table = queue_of(models().Job, "default").table
    written = str(table.update().values({table.c.title: "x"}))
    assert written.startswith('UPDATE "shop_job" SET "title"=')


def test_errors_that_others_have_stored_keep_no_worker_from_its_row(alias: str) -> None:
    from django.db import connections

    job = models().Job
    used_up, cancelled, failing = (job.objects.create(title=title) for title in ("a", "b", "c"))
    with connections[alias].cursor() as cursor:
        cursor.execute("UPDATE shop_job SET errors = %s", ["no list: 50%"])
        cursor.execute("UPDATE shop_job SET status = 'running', attempts = 2, retry_at = 1 WHERE title = 'a'")
    kept = {"type": "", "message": "no list: 50%", "traceback": "", "attempt": 0, "at": ""}
    assert job.objects.get(pk=failing.pk).last_error == kept
    assert job.objects.reap() == 1
    assert cancelled.cancel("enough")
    with pytest.raises(ZeroDivisionError), job.objects.start(failing.pk):
        _ = 1 / 0
    for row, message in (
        (used_up, "lease expired"),
        (cancelled, "enough"),
        (failing, "division by zero"),
    ):
        row.refresh_from_db()
        first, last = row.errors
        assert (first, last["message"]) == (kept, message)


def test_a_blocking_lease_is_refused_where_an_event_loop_runs_before_its_block(alias: str) -> None:
    from django.core.exceptions import SynchronousOnlyOperation

    row = models().Job.objects.create()
    [lease] = models().Job.objects.claim()
    ran = []

    async def enter() -> None:
        with pytest.raises(SynchronousOnlyOperation), lease:
            ran.append("the body")

    asyncio.run(enter())
    assert not ran
    with lease:  # it was not begun
        ran.append("the body")
    row.refresh_from_db()
    assert (ran, row.status) == (["the body"], "succeeded")
