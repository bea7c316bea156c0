"""Real processes on Django's queue: each row once, whoever dies or sleeps."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.django.queue.workers import drain_queue, work_until_told
from tests.django.test_contract import plain
from tests.processes import Worker, race
from tests.waiting import eventually


def test_every_row_is_claimed_by_one_worker(alias: str, project: Any) -> None:
    from tests.django.shop.models import Job

    Job.objects.bulk_create([Job(title=str(number)) for number in range(200)])
    worked = race(drain_queue, plain(project), alias, processes=4, within=120)
    done = sorted(pk for process in worked for pk in process)
    assert done == sorted(Job.objects.filter(status="succeeded", attempts=1).values_list("pk", flat=True))
    assert len(done) == 200


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_the_row_of_a_worker_that_is_gone_is_taken_over(end: str, alias: str, project: Any) -> None:
    from tests.django.shop.models import Kept

    row = Kept.objects.create()
    with Worker(work_until_told, plain(project), alias) as worker:
        assert worker.hear(within=60) == 1
        began = time.monotonic()
        if end == "killed":
            worker.sigkill()
        else:
            worker.sigstop()
        [lease] = eventually(Kept.objects.claim)
        assert time.monotonic() - began > 1  # at the end of the lease, two seconds after its last heartbeat
        assert lease.attempt == 2
        if end == "stopped":
            worker.sigcont()
            assert worker.result() == "lost"
        lease.complete(title="by the second")
    row.refresh_from_db()
    assert (row.status, row.title, row.attempts) == ("succeeded", "by the second", 2)
