"""A queue under Django's own test classes."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from reservable import NotSupported
from tests.django.conftest import Twice

pytestmark = pytest.mark.usefixtures("clean")


def body(case: Any) -> None:
    """What a user's test does; leaves a row behind."""
    from tests.django.shop.models import Job, Kept

    Job.objects.create(title="x")
    [lease] = Job.objects.claim()
    with lease:
        lease.set(title="y")
    job = Job.objects.get()
    assert (job.status, job.title) == ("succeeded", "y")
    assert job.enqueue()
    with pytest.raises(ZeroDivisionError), Job.objects.start(job.pk):
        raise ZeroDivisionError
    job.refresh_from_db()
    assert job.last_error["type"] == "ZeroDivisionError"
    assert job.pause()
    assert job.resume()
    stop = threading.Event()
    for held in Job.objects.work(stop=stop):
        with held, held.transaction() as row:
            row.title = "z"
            row.save()
        stop.set()
    assert Job.objects.get().title == "z"
    Kept.objects.create()
    with (
        pytest.raises(NotSupported, match=r"TransactionTestCase.*'TEST': {'NAME'")
        if case.seen_by_one
        else threading.Lock()
    ):
        Kept.objects.run(lambda lease: None, stop=lambda: not Kept.objects.due().exists())


@pytest.mark.parametrize("kind", ["default", "postgresql", "mariadb", "memory"])
def test_in_a_testcase(kind: str, twice: Twice) -> None:
    twice("TestCase", kind, body, seen_by_one=True)


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_in_a_transactiontestcase(kind: str, twice: Twice) -> None:
    twice("TransactionTestCase", kind, body, seen_by_one=False)
