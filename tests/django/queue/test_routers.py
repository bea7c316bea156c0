"""A queue behind routers: everything is asked of the database that is written to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.django.project import pointed

pytestmark = pytest.mark.usefixtures("clean")


def test_a_replica_is_never_asked() -> None:
    from tests.django.shop.models import Job

    with pointed(writes="default", reads="other"):
        row = Job(title="x")
        assert row.enqueue("0 seconds")
        [lease] = Job.objects.claim()
        with lease.transaction() as mine:
            mine.title = "y"
            mine.save()
        assert row.enqueue()
        with Job.objects.start(row.pk):
            pass
        assert Job.objects.reap() == 0
        assert Job.objects.using("default").status_counts()["succeeded"] == 1
        assert Job.objects.prune(0) == 1


def test_an_operator_with_a_row_of_the_replica_moves_the_one_that_is_written() -> None:
    """`other` is a replica that lags: it has the row as it was."""
    from tests.django.shop.models import Job

    with pointed(writes="default"):
        pk = Job.objects.create(title="x").pk
    with pointed(writes="other"):
        Job.objects.create(pk=pk, title="x")
    before = Job.objects.using("other").values().get()
    with pointed(writes="default", reads="other"):

        def row() -> Any:
            found = Job.objects.get()
            assert (found._state.db, found.status) == ("other", "pending")
            return found

        def written() -> str:
            return str(Job.objects.using("default").get().status)

        for move, status in (
            (lambda: row().pause(), "paused"),
            (lambda: row().resume("1 hour"), "pending"),
            (lambda: row().cancel("enough"), "cancelled"),
            (lambda: row().retry(), "pending"),
            (lambda: asyncio.run(row().apause()), "paused"),
            (lambda: asyncio.run(row().acancel()), "cancelled"),
            (lambda: row().enqueue(), "pending"),
        ):
            assert move()
            assert written() == status
        old = row()
        assert not old.resume()
        assert old.pause()
        assert old.status == "paused"
        old.title = "y"
        old.save()
        assert Job.objects.using("default").values_list("status", "title").get() == ("paused", "y")
    assert Job.objects.using("other").values().get() == before


def test_a_database_that_is_named_is_the_one() -> None:
    from tests.django.shop.models import Job

    with pointed(writes=None):
        row = Job.objects.using("other").create(title="x")
        assert Job.objects.claim() == []
        [lease] = Job.objects.using("other").claim()
        lease.fail("no")
        row.refresh_from_db()
        assert row.last_error["message"] == "no"
        assert row.cancel()
        assert Job.objects.using("other").prune(0) == 1
