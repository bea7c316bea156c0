"""Which rows a queryset claims."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from reservable import InvalidKey, NotClaimable, NotSupported


def models() -> Any:
    from tests.django.shop import models

    return models


def titles(leases: Any) -> list[str]:
    return [lease.row.title for lease in leases]


def test_rows_come_by_priority_then_due_time_then_key(alias: str) -> None:
    job = models().Job
    now = datetime.now(UTC)
    for title, priority, minutes in (("c", 0, 2), ("b", 0, 3), ("a", 1, 1), ("d", 0, 1), ("no", 9, -9)):
        job.objects.create(title=title, priority=priority, retry_at=now - timedelta(minutes=minutes))
    assert titles(job.objects.claim(limit=2)) == ["a", "b"]
    assert titles(job.objects.order_by("-title").claim(limit=9)) == ["c", "d"]
    assert job.objects.claim() == []


def test_filters_say_which_rows(alias: str) -> None:
    from django.db.models import Exists, F, OuterRef, Q

    job, channel = models().Job, models().Channel
    news = channel.objects.create(name="50% of: news's")
    for title in ("a%b", "a:b", 'a"b', "plain"):
        job.objects.create(title=title, channel=news if title == "plain" else None)
    assert job.objects.none().claim() == []
    assert job.objects.filter(title="nothing").claim() == []
    assert titles(job.objects.filter(title__contains="%").claim(5)) == ["a%b"]
    assert titles(job.objects.filter(title="a:b").claim(5)) == ["a:b"]
    assert titles(job.objects.claim(5, where=Q(title__startswith='a"') | Q(title="no"))) == ['a"b']
    assert job.objects.exclude(channel_id=F("channel_id")).filter(channel=news).claim() == []
    named = channel.objects.filter(pk=OuterRef("channel_id"), name="50% of: news's")
    assert titles(job.objects.filter(Exists(named)).claim(5)) == ["plain"]


@pytest.mark.parametrize(
    ("clause", "changed"),
    [
        ("a slice", lambda rows: rows[:5]),
        ("distinct", lambda rows: rows.distinct()),
        ("union", lambda rows: rows.union(rows)),
        ("values", lambda rows: rows.values("title")),
        ("select_for_update", lambda rows: rows.select_for_update()),
        ("joins", lambda rows: rows.filter(channel__name="x")),
    ],
)
def test_what_is_no_condition_on_a_row_is_refused_by_name(sqlite: str, clause: str, changed: Any) -> None:
    row = models().Job.objects.create()
    with pytest.raises(NotSupported, match=clause):
        changed(models().Job.objects.all()).claim()
    row.refresh_from_db()
    assert row.status == "pending"


def test_an_aggregate_is_refused(sqlite: str) -> None:
    from django.db.models import Count

    with pytest.raises(NotSupported, match="aggregate"):
        models().Job.objects.annotate(Count("channel")).claim()


def test_a_row_that_is_reserved_can_be_left_out(alias: str) -> None:
    kept = models().Kept
    one, two = (kept.objects.create(title=title) for title in ("one", "two"))
    assert one.reserve("maintenance", "1h")
    assert titles(kept.objects.unreserved("maintenance").claim(5)) == ["two"]
    assert kept.objects.first_reserved("maintenance") == two
    one.release("maintenance")
    assert titles(kept.objects.unreserved("maintenance").claim(5)) == ["one"]


def test_keys_of_other_types(alias: str) -> None:
    kept = models().Kept
    row = kept.objects.create(title="x")
    for pk in (row.pk, str(row.pk), (row.pk,)):
        with kept.objects.start(pk) as lease:
            assert lease.row.pk == row.pk
            lease.release()
    [lease] = kept.objects.claim()
    assert lease.row == row
    with pytest.raises(InvalidKey):
        kept.objects.start("no uuid").__enter__()
    with pytest.raises(NotClaimable, match="missing"):
        kept.objects.start(uuid.uuid4()).__enter__()


def test_a_key_of_two_parts_and_names_that_have_to_be_quoted(alias: str) -> None:
    turn = models().Turn
    rows = [turn.objects.create(hall=hall, number=number) for hall in ("a", "b") for number in (1, 2)]
    with turn.objects.start(("b", 1)) as lease:
        lease.set(order=7)
    assert [lease.pk for lease in turn.objects.filter(hall="a").claim(5)] == [("a", 1), ("a", 2)]
    assert rows[0].pause()
    [lease] = turn.objects.exclude(order=7).claim(5)
    with lease.transaction() as row:
        row.order = 9
        row.save()
    assert {row.pk: (row.status, row.order) for row in turn.objects.all()} == {
        ("a", 1): ("paused", 0),
        ("a", 2): ("running", 0),
        ("b", 1): ("succeeded", 7),
        ("b", 2): ("succeeded", 9),
    }
    assert turn.objects.status_counts()["succeeded"] == 2
    assert turn.objects.prune(0) == 2


def test_a_child_by_multi_table_inheritance_says_where_its_queue_is(sqlite: str) -> None:
    models().LongJob.objects.create(title="x")
    with pytest.raises(NotSupported, match="Job"):
        models().LongJob.objects.claim()
    [lease] = models().Job.objects.claim()
    assert lease.row.title == "x"


def test_a_proxy_is_the_same_queue(sqlite: str) -> None:
    models().Job.objects.create(title="x")
    [lease] = models().QuickJob.objects.claim()
    assert type(lease.row) is models().QuickJob
    lease.complete()
    assert models().Job.objects.get().status == "succeeded"


def test_statuses_of_whole_numbers_and_steps(alias: str) -> None:
    stage = models().Stage
    row = stage.objects.create()
    assert (row.status, row.step) == (1, "download")
    for step in ("download", "convert"):
        with pytest.raises(NotClaimable, match="running"), stage.objects.start(row.pk) as lease:
            assert lease.step == step
            with stage.objects.start(row.pk):
                raise AssertionError
        stage.objects.filter(pk=row.pk).update(retry_at=datetime.now(UTC))
        [lease] = stage.objects.claim(step=step)
        lease.complete()
    assert stage.objects.status_counts() == {1: 0, 2: 0, 3: 1, 4: 0, 5: 0, 6: 0}


def test_what_is_due_running_and_expired_can_be_asked_for(alias: str) -> None:
    from django.db.models import Q

    job = models().Job
    hour = timedelta(hours=1)
    now = datetime.now(UTC)
    rows = {
        title: job.objects.create(title=title, status=status, retry_at=at, attempts=attempts)
        for title, status, at, attempts in (
            ("due", "pending", now - hour, 0),
            ("later", "pending", now + hour, 0),
            ("never", "pending", None, 0),
            ("running", "running", now + hour, 1),
            ("expired", "running", now - hour, 1),
            ("used up", "running", now - hour, 2),
            ("done", "succeeded", None, 1),
        )
    }
    assert {row.title for row in job.objects.due()} == {"due", "expired"}
    assert {row.title for row in job.objects.running()} == {"running"}
    assert {row.title for row in job.objects.expired()} == {"expired", "used up"}
    assert {row.title for row in job.objects.filter(job.due() & ~Q(title="due"))} == {"expired"}
    assert job.objects.filter(channel=None).status_counts(where=~Q(title="later"))["pending"] == 2
    assert len(rows) == sum(job.objects.status_counts().values())
    assert job.objects.reap() == 1
    assert job.objects.get(title="used up").last_error["message"] == "lease expired"
    assert job.objects.prune("1 hour") == 0
    job.objects.filter(title="used up").update(finished_at=now - 2 * hour)
    assert job.objects.prune("1 hour") == 1


@pytest.mark.parametrize("name", ["Hour", "Length", "Price"])
def test_a_key_that_drivers_have_otherwise_than_python(name: str, alias: str) -> None:
    model = getattr(models(), name)
    value = {
        "Hour": datetime(2026, 7, 2, 3, 4, tzinfo=UTC),
        "Length": timedelta(days=1, microseconds=5),
        "Price": Decimal("1.250000"),
    }[name]
    row = model.objects.create(key=value)
    [lease] = model.objects.claim()
    assert lease.row == row
    assert lease.pk == (value,)
    lease.release()
    with model.objects.start(value) as lease, lease.transaction() as mine:
        assert mine == row
    row.refresh_from_db()
    assert row.status == "succeeded"


def test_a_window_is_refused_by_name(sqlite: str) -> None:
    from django.db.models import F, Window
    from django.db.models.functions import RowNumber

    rows = models().Job.objects.annotate(place=Window(RowNumber(), order_by=F("id").asc()))
    with pytest.raises(NotSupported, match="window"):
        rows.filter(place=1).claim()


def test_rows_are_counted_once(alias: str) -> None:
    from django.db.models import Count

    channel = models().Channel.objects.create(name="c")
    for _ in range(2):
        models().Job.objects.create(channel=channel)
    jobs = models().Job.objects
    for rows in (
        jobs.all(),
        jobs.annotate(Count("channel")),
        jobs.filter(channel__name="c"),
        jobs.distinct(),
        jobs.order_by("id")[:5],
    ):
        if not rows.query.is_sliced or alias != "mariadb":  # which has no LIMIT in a subquery
            assert rows.status_counts()["pending"] == 2
