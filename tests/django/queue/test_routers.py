"""A queue behind routers: everything is asked of the database that is written to."""

from __future__ import annotations

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
