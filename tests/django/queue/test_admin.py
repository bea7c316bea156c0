"""A queue's page in the admin."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest

from reservable import BackendError
from tests.django.test_admin import browser, site, told

__all__ = ["site"]

pytestmark = pytest.mark.usefixtures("site")

PAGE = "/admin/shop/job/"


def jobs() -> Any:
    from tests.django.shop.models import Job

    return Job.objects


@pytest.fixture
def rows() -> dict[str, Any]:
    hour = timedelta(hours=1)
    now = datetime.now(UTC)
    return {
        title: jobs().create(title=title, status=status, retry_at=at)
        for title, status, at in (
            ("is-due", "pending", now - hour),
            ("is-later", "pending", now + hour),
            ("is-running", "running", now + hour),
            ("is-expired", "running", now - hour),
            ("has-failed", "failed", None),
        )
    }


def page(client: Any, query: str = "") -> str:
    response = client.get(f"{PAGE}{query}", follow=True)
    assert response.status_code == 200
    return unescape(response.content.decode())


def titles(text: str) -> set[str]:
    return {
        title
        for title in ("is-due", "is-later", "is-running", "is-expired", "has-failed")
        if f">{title}<" in text
    }


def act(client: Any, action: str, *chosen: Any) -> str:
    form = {"action": action, "_selected_action": [row.pk for row in chosen], "index": 0}
    return unescape(client.post(PAGE, form, follow=True).content.decode())


def test_counts_and_filters(rows: dict[str, Any]) -> None:
    client = browser("view_job")
    text = page(client)
    assert titles(text) == {*rows}
    for count in ("pending: 2", "running: 2", "failed: 1", "succeeded: 0", "paused: 0"):
        assert count in text
    for query, found in (
        ("queue=due", {"is-due", "is-expired"}),
        ("queue=running", {"is-running"}),
        ("queue=expired", {"is-expired"}),
        ("queue=failed", {"has-failed"}),
        ("status__exact=pending", {"is-due", "is-later"}),
        ("q=", {*rows}),
    ):
        assert titles(page(client, f"?{query}")) == found


def test_actions_move_what_is_in_a_status_for_them(rows: dict[str, Any]) -> None:
    client = browser("view_job", "change_job")
    assert "1 paused; 1 were in another status." in act(
        client, "queue_pause", rows["is-due"], rows["has-failed"]
    )
    assert "1 resumed." in act(client, "queue_resume", rows["is-due"])
    assert "1 queued again." in act(client, "queue_retry", rows["has-failed"])
    assert "2 cancelled." in act(client, "queue_cancel", rows["is-due"], rows["is-running"])
    assert jobs().status_counts() == {
        "pending": 2,
        "running": 1,
        "succeeded": 0,
        "failed": 0,
        "paused": 0,
        "cancelled": 2,
    }


def test_who_may_only_look_has_no_actions(rows: dict[str, Any]) -> None:
    client = browser("view_job")
    assert "queue_pause" not in page(client)
    act(client, "queue_pause", rows["is-due"])
    assert jobs().get(title="is-due").status == "pending"


def test_the_error_of_a_row_with_its_traceback_and_nothing_of_it_is_html() -> None:
    jobs().create(title="x")
    [lease] = jobs().claim(worker="<b>w</b>")
    listed = browser("view_job").get(PAGE).content.decode()
    assert "&lt;b&gt;w&lt;/b&gt;" in listed
    assert "<b>w</b>" not in listed
    with pytest.raises(ValueError, match="script"), lease:
        raise ValueError("<script>alert(1)</script>")
    client = browser("view_job", "change_job")
    response = client.get(f"{PAGE}{lease.pk[0]}/change/")
    source = response.content.decode()
    assert "<script>alert(1)" not in source
    assert "ValueError: <script>alert(1)</script>" in unescape(source)
    assert "Traceback (most recent call last)" in source


def test_a_form_that_is_saved_does_not_touch_the_lease() -> None:
    jobs().create(title="old")
    client = browser("view_job", "change_job")
    [lease] = jobs().claim()
    url = f"{PAGE}{lease.pk[0]}/change/"
    assert client.post(url, {"title": "new", "priority": 5}).status_code == 302
    lease.complete()
    row = jobs().get()
    assert (row.title, row.priority, row.status) == ("new", 5, "succeeded")


def test_without_the_app_a_check_says_that_its_templates_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.apps import apps
    from django.contrib import admin

    from tests.django.shop.models import Job

    ours = admin.site._registry[Job]
    assert ours.check() == []
    monkeypatch.setattr(apps, "is_installed", lambda name: name != "reservable.django")
    assert [found.id for found in ours.check() if "reservable" in found.id] == ["reservable.E005"]


def test_what_the_queue_has_of_a_row_is_shown_once_and_of_a_new_one_not_at_all() -> None:
    row = jobs().create(title="x")
    client = browser("view_job", "change_job", "add_job")
    changing = client.get(f"{PAGE}{row.pk}/change/").content.decode()
    for field in ("status", "queue_until", "attempts", "leased_by", "queue_finished", "queue_errors"):
        assert changing.count(f"field-{field}") == 1
    adding = client.get(f"{PAGE}add/").content.decode()
    assert 'name="title"' in adding
    assert 'name="priority"' in adding
    assert "field-queue_until" not in adding
    assert "DatabaseDefault" not in adding


def test_fields_that_the_admin_chooses_itself_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.contrib import admin
    from django.test import RequestFactory

    from tests.django.shop.models import Job

    row = jobs().create(title="x")
    ours = admin.site._registry[Job]
    request = RequestFactory().get(PAGE)
    monkeypatch.setattr(ours, "fields", ("title", "status"))
    (_, own), (_, queue) = ours.get_fieldsets(request, row)
    assert own["fields"] == ["title", "status"]
    assert "status" not in queue["fields"]
    assert "attempts" in queue["fields"]
    assert [fields["fields"] for _, fields in ours.get_fieldsets(request)] == [["title", "status"]]


def test_actions_of_the_class_itself_stand_beside_the_queues() -> None:
    from django.contrib import admin
    from django.contrib.auth.models import User
    from django.test import RequestFactory

    from reservable.django.queue.admin import QueuedAdmin
    from tests.django.shop.models import Job

    class Own(QueuedAdmin, admin.ModelAdmin):
        @admin.action
        def print_them(self, request: Any, queryset: Any) -> None:
            """Nothing."""

        actions = ("print_them",)

    class Bare(QueuedAdmin, admin.ModelAdmin):
        actions = None

    request = RequestFactory().get(PAGE)
    request.user = User(is_superuser=True, is_active=True)
    queues = {"queue_pause", "queue_resume", "queue_retry", "queue_cancel"}
    assert {"print_them", *queues} <= {*Own(Job, admin.site).get_actions(request)}
    assert Bare(Job, admin.site).get_actions(request) == {}


def test_the_counts_are_of_whatever_queryset_the_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.contrib import admin
    from django.db.models import Count, QuerySet

    from tests.django.shop.models import Errand, Job

    client = browser(superuser=True)
    Errand.objects.create(title="x")
    assert "pending: 1" in client.get("/own/shop/errand/").content.decode()
    jobs().create(title="x", priority=1)
    jobs().create(title="y")
    for rows in (QuerySet(Job), QuerySet(Job).annotate(many=Count("channel")), Job.objects.distinct()):
        found = rows.filter(priority=1)
        monkeypatch.setattr(
            type(admin.site._registry[Job]), "get_queryset", lambda *_, found=found: found.all()
        )
        assert "pending: 1" in page(client)


def test_a_child_of_a_queue_has_no_actions() -> None:
    from tests.django.shop.models import LongJob

    client = browser(superuser=True)
    row = LongJob.objects.create(title="x")
    assert "queue_pause" not in client.get("/own/shop/longjob/").content.decode()
    form = {"action": "queue_pause", "_selected_action": [row.pk], "index": 0}
    assert told(client.post("/own/shop/longjob/", form, follow=True)) == ["No action selected."]
    assert "1 paused." in act(client, "queue_pause", row)  # on its parent's page
    assert client.get(f"/own/shop/longjob/{row.pk}/change/").status_code == 200


@pytest.mark.parametrize("in_one_transaction", [True, False])
@pytest.mark.parametrize("kind", [BackendError, "OperationalError"])
def test_an_error_half_way_is_told_and_what_was_done_is_in_the_log(
    kind: Any, in_one_transaction: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django import db
    from django.contrib.admin.models import LogEntry

    from tests.django.shop.models import Job

    left, spoilt, done = (jobs().create(title=title) for title in ("left", "spoilt", "done"))
    pause = Job.pause

    def failing(row: Any) -> bool:
        moved = pause(row)
        if row.pk == spoilt.pk:
            raise (db.OperationalError if kind == "OperationalError" else kind)("the disk is full")
        return moved

    client = browser("view_job", "change_job")
    monkeypatch.setattr(Job, "pause", failing)
    monkeypatch.setitem(db.connections.settings["default"], "ATOMIC_REQUESTS", in_one_transaction)
    form = {"action": "queue_pause", "_selected_action": [row.pk for row in (done, spoilt, left)], "index": 0}
    response = client.post(PAGE, form, follow=True)
    assert told(response) == [f"{spoilt} and 1 more could not be paused: the disk is full", "1 paused."]
    assert dict(jobs().values_list("title", "status")) == {
        "done": "paused",
        "spoilt": "pending",
        "left": "pending",
    }
    [entry] = LogEntry.objects.all()
    assert (entry.object_id, entry.change_message) == (str(done.pk), "Paused.")


def test_a_row_that_may_not_be_changed_is_left_alone(
    rows: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.contrib import admin

    from tests.django.shop.models import Job

    def may(_: Any, request: Any, obj: Any = None) -> bool:
        return obj is None or obj.title != "is-due"

    monkeypatch.setattr(type(admin.site._registry[Job]), "has_change_permission", may)
    client = browser("view_job", "change_job")
    text = act(client, "queue_cancel", rows["is-due"], rows["is-later"], rows["has-failed"])
    assert "1 cancelled; 1 may not be changed by you; 1 were in another status." in text
    assert jobs().get(title="is-due").status == "pending"
    assert jobs().get(title="is-later").status == "cancelled"


@pytest.mark.parametrize("use_tz", [True, False])
def test_times_are_in_the_time_zone_of_the_project_which_is_named(use_tz: bool) -> None:
    from zoneinfo import ZoneInfo

    from django.test import override_settings

    def there(moment: datetime) -> str:
        return f">{moment.astimezone(ZoneInfo('Pacific/Kiritimati')):%Y-%m-%d %H:%M:%S}</time>"

    client = browser("view_job")
    jobs().create(title="x")
    [lease] = jobs().claim()
    lease.fail("first", retry_in="1 hour")
    row = jobs().get()
    with override_settings(USE_TZ=use_tz, TIME_ZONE="Pacific/Kiritimati"):
        listed, shown = page(client), page(client, f"{row.pk}/change/")
        for text in (listed, shown):
            assert there(row.retry_at) in text
            assert "Times in Pacific/Kiritimati." in text
        assert there(datetime.fromisoformat(row.last_error["at"])) in shown
        row.cancel()
        shown = page(client, f"{row.pk}/change/")
        assert there(row.finished_at) in shown


@pytest.mark.parametrize(
    "stored",
    [
        '[{"type": "foreign"}]',
        '{"foreign": 1}',
        '"foreign"',
        '[1, [2], "foreign"]',
        "foreign: no JSON",
        '[{"message": "foreign", "at": "yesterday"}]',
        '[{"message": "foreign", "at": "2026-01-02T03:04:05"}]',
        '[{"message": "foreign \\ud800", "at": "0001-01-01T00:00:00+14:00", "attempt": {}}]',
    ],
)
def test_errors_that_others_have_stored_are_shown_as_text(stored: str) -> None:
    from django.db import connection

    row = jobs().create(title="x")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE shop_job SET errors = %s", [stored])
    client = browser("view_job", "change_job")
    for query in ("", f"{row.pk}/change/"):
        assert "foreign" in page(client, query)
    assert client.post(f"{PAGE}{row.pk}/change/", {"title": "new", "priority": 5}).status_code == 302
    with connection.cursor() as cursor:
        cursor.execute("SELECT title, errors FROM shop_job")
        assert cursor.fetchall() == [("new", stored)]
