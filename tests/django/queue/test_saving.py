"""What a save does to the queue's columns."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import warnings
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reservable import QueueColumnWarning


def models() -> Any:
    from tests.django.shop import models

    return models


def state(row: Any) -> tuple[Any, ...]:
    found = type(row).objects.values_list(
        "status", "retry_at", "lease_token", "leased_by", "attempts", "errors", "finished_at", "title"
    )
    return found.get(pk=row.pk)  # type: ignore[no-any-return]


def test_an_old_object_that_is_saved_whole_does_not_write_the_lease_back(alias: str) -> None:
    old = models().Job.objects.create(title="old")
    older = models().Job.objects.get(pk=old.pk)
    [lease] = models().Job.objects.claim(worker="w")
    before = state(old)
    for stale in (old, older):
        stale.title = "new"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            stale.save()
        assert state(old) == (*before[:-1], "new")
    lease.complete()
    old.save()
    assert state(old)[0] == "succeeded"


def test_an_object_that_was_never_loaded_does_not_write_the_lease_back(alias: str) -> None:
    row = models().Job.objects.create(title="old")
    [lease] = models().Job.objects.claim()
    models().Job(pk=row.pk, title="new").save()
    assert state(row)[0] == "running"
    lease.complete()
    assert state(row)[-1] == "new"


def test_a_change_warns_with_the_callers_place_and_is_written(alias: str) -> None:
    row = models().Job.objects.create()
    row.status = "failed"
    with pytest.warns(QueueColumnWarning, match="status of a Job") as caught:
        row.save()
    assert caught[0].filename == __file__
    assert state(row)[0] == "failed"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row.save()  # it is what it was
        row.attempts = 7
        row.save(update_fields=["title"])
    assert state(row)[4] == 0


def test_a_change_can_be_refused(sqlite: str) -> None:
    row = models().Strict.objects.create()
    row.attempts = 3
    with pytest.raises(QueueColumnWarning):
        row.save()
    assert models().Strict.objects.get().attempts == 0


def test_what_the_verbs_show_is_no_change(alias: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row = models().Job.objects.create()
        assert row.pause()
        row.save()
        assert row.resume("1 hour")
        row.save()
        assert state(row)[:1] == ("pending",)
        assert row.retry_at > datetime.now(UTC) + timedelta(minutes=59)
        with models().Job.objects.start(row.pk, ignore_due=True) as lease:
            lease.row.title = "by the worker"
            lease.row.save()
            lease.set(title="at the end")
    assert state(row)[0] == "succeeded"
    assert state(row)[-1] == "at the end"


def test_deferred_and_refreshed_objects(alias: str) -> None:
    pk = models().Job.objects.create().pk
    thin = models().Job.objects.only("title").get(pk=pk)
    [lease] = models().Job.objects.claim()
    thin.title = "x"
    thin.save()
    assert thin.status == "running"
    thin.title = "y"
    thin.save()
    lease.complete()
    thin.refresh_from_db()
    assert thin.status == "succeeded"
    thin.save()
    assert state(thin)[0] == "succeeded"


def test_a_new_object_has_the_databases_defaults(alias: str) -> None:
    from django.db import connections

    row = models().Job.objects.create()
    assert abs(row.retry_at - datetime.now(UTC)) < timedelta(minutes=1)
    with connections[alias].cursor() as cursor:
        cursor.execute("INSERT INTO shop_job (title) VALUES ('by hand')")
    assert [lease.row.title for lease in models().Job.objects.claim(5)] == ["", "by hand"]


def test_a_fixture_is_loaded_as_it_was(alias: str) -> None:
    from django.core import serializers

    models().Job.objects.create(title="x")
    [lease] = models().Job.objects.claim()
    lease.fail("no")
    before = state(lease.row)
    text = serializers.serialize("json", models().Job.objects.all())
    assert json.loads(text)[0]["fields"]["status"] == "pending"
    models().Job.objects.all().delete()
    for found in serializers.deserialize("json", text, using=alias):
        found.save(using=alias)
    (*columns, at), (*others, due) = (
        (*found[:1], *found[2:], found[1]) for found in (state(lease.row), before)
    )
    assert columns == others
    assert due - at < timedelta(milliseconds=1)  # all that Django's JSON has of a time


def test_objects_from_everywhere_are_saved_without_a_word(alias: str) -> None:
    job = models().Job
    made = job.objects.bulk_create([job(title="bulk"), job(title="other")])
    stored = {row.title: row for row in job.objects.all()}
    copied = copy.copy(stored["bulk"])
    unpickled = pickle.loads(pickle.dumps(stored["other"]))
    [lease, _] = job.objects.claim(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for row in (copied, unpickled, *(row for row in made if row.pk is not None)):
            row.full_clean()
            row.title += "!"
            row.save()
        job.objects.bulk_update([copied], ["title"])
        found, _ = job.objects.update_or_create(pk=copied.pk, defaults={"title": "last"})
    assert found.status == "running"
    assert job.objects.status_counts()["running"] == 2
    lease.complete()


def test_a_form_has_the_priority_and_nothing_of_the_lease(sqlite: str) -> None:
    from django.forms import modelform_factory

    form = modelform_factory(models().Job, fields="__all__")
    assert {*form.base_fields} == {"title", "channel", "priority"}
    bound = form({"title": "x", "priority": 3})
    assert bound.is_valid(), bound.errors
    assert bound.save().priority == 3


def test_a_copy_knows_for_itself(alias: str) -> None:
    row = models().Job.objects.create()
    row.refresh_from_db()
    copied = copy.copy(row)
    [lease] = models().Job.objects.claim()
    copied.refresh_from_db()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row.title = "x"
        row.save()
    assert state(row)[0] == "running"
    lease.complete()


def test_a_change_that_was_not_saved_is_not_forgotten(sqlite: str) -> None:
    row = models().Strict.objects.create()
    row.status = "paused"
    row.save(update_fields=["priority"])
    with pytest.raises(QueueColumnWarning):
        row.save()


QUEUES = ["status", "retry_at", "lease_token", "leased_by", "attempts", "errors", "finished_at"]


def test_old_objects_that_are_updated_together_do_not_write_the_lease_back(alias: str) -> None:
    job = models().Job
    first, second = job.objects.create(title="old"), job.objects.create(title="old")
    [lease, other] = job.objects.claim(2, worker="w")
    running = job.objects.get(pk=first.pk)
    thin = job.objects.only("title").get(pk=second.pk)
    lease.complete()
    before = [state(row)[:-1] for row in (first, second)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in ([running, second], [first, thin]):
            for row in rows:
                row.title += "!"
            assert job.objects.bulk_update(rows, ["title", *QUEUES]) == 2
    assert [state(row)[:-1] for row in (first, second)] == before
    assert [state(row)[-1] for row in (first, second)] == ["old!", "old!"]
    assert (running.status, first.status, "status" in vars(thin)) == ("running", "pending", False)
    other.complete()


def test_a_bulk_update_that_changes_warns_with_the_callers_place_and_is_written(alias: str) -> None:
    job = models().Job
    first, second = job.objects.bulk_create([job(title="a"), job(title="b")])
    first, second = job.objects.order_by("title")
    job.objects.claim(2)
    first.status = "failed"
    with pytest.warns(QueueColumnWarning, match="a bulk_update changes status of a Job") as caught:
        job.objects.bulk_update([first, second], ["status", "attempts"])
    assert [warning.filename for warning in caught] == [__file__]
    assert [(state(row)[0], state(row)[4]) for row in (first, second)] == [("failed", 1), ("running", 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        job.objects.bulk_update([first], ["status"])  # it is what it was
        job.objects.bulk_update((row for row in [first]), ["title"], batch_size=1)
        first.attempts = 7
        assert asyncio.run(job.objects.abulk_update([first], ["title"])) == 1
    with pytest.warns(QueueColumnWarning):
        job.objects.bulk_update([job(pk=second.pk, status="paused")], ["status"])
    assert state(second)[0] == "paused"


def test_a_bulk_update_can_be_refused(sqlite: str) -> None:
    strict = models().Strict
    first, second = strict.objects.create(), strict.objects.create()
    second.status = "failed"
    with pytest.raises(QueueColumnWarning):
        strict.objects.bulk_update([first, second], ["priority", "status"])
    assert strict.objects.status_counts()["pending"] == 2
    assert second.status == "failed"


def test_a_bulk_update_of_a_child_leaves_its_parents_queue_alone(alias: str) -> None:
    long = models().LongJob
    row = long.objects.create(title="x")
    models().Job.objects.claim()
    row.minutes, row.title = 7, "y"
    long.objects.bulk_update([row], ["minutes", "title", "status", "lease_token"])
    found = long.objects.get()
    assert (found.minutes, found.title, found.status, found.lease_token) == (7, "y", "running", 1)


def test_an_update_is_written_as_said(alias: str) -> None:
    row = models().Job.objects.create()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert models().Job.objects.filter(pk=row.pk).update(status="failed", attempts=2) == 1
    assert (state(row)[0], state(row)[4]) == ("failed", 2)
