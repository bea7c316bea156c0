"""The admin's page of reservations as a person uses it, in a browser; pictures of it are kept in build/screenshots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.django.browser import Browser, chromium, served
from tests.servers import ServerMissing
from tests.stores import BROWSER, servers_are_required

PICTURES = Path(__file__).parents[2] / "build" / "screenshots"

PASSWORD = "correct horse battery staple"

TOKEN = "bf9e1f3a57c24d6e8a90"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("no_proxy", "127.0.0.1,localhost")  # the way to the driver
        try:
            running = stack.enter_context(chromium(tmp_path_factory.mktemp("chromium")))
        except ServerMissing as missing:
            if servers_are_required():
                pytest.fail(f"{BROWSER} is required here: {missing}", pytrace=False)
            pytest.skip(f"{BROWSER}: {missing}")
        yield running


@pytest.fixture
def browser(driver: Any, sqlite: str) -> Iterator[Browser]:
    from django.contrib.admin.models import LogEntry
    from django.contrib.auth.models import User
    from django.contrib.sessions.models import Session
    from django.test import override_settings

    PICTURES.mkdir(parents=True, exist_ok=True)
    with override_settings(ROOT_URLCONF="tests.django.admin_urls", TIME_ZONE="UTC"), served() as address:
        yield Browser(driver, address, PICTURES)
        driver.delete_all_cookies()
        driver.get("about:blank")
    for model in (LogEntry, Session, User):
        model.objects.all().delete()


@pytest.fixture
def reserved(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is reserved, in their order."""
    from reservable.config import backend_for
    from tests.django.shop.models import Book, Video

    monkeypatch.setattr(Video, "__str__", lambda video: video.title)
    monkeypatch.setattr(Book, "__str__", lambda book: book.code)
    videos = [Video.objects.create(title=title) for title in ("Rainbow", "Harbour", "Night train")]
    Book.objects.create(code="978-0141439518")
    hours = timedelta(hours=1)
    granted = [
        ("shop.book:978-0141439518:print", "press-1:8201", 2 * hours),
        *(
            (f"shop.video:{video.pk}:download", f"cron-{video.pk % 2 + 1}:4711", 6 * hours)
            for video in videos
        ),
        (f"shop.video:{videos[0].pk}:thumbnail", "R&D <gpu-3>:977", hours / 4),
    ]
    for name, owner, lifetime in granted:
        assert backend_for().acquire(name, f"{TOKEN}{name}"[:64], owner, lifetime) is not None
    return sorted(name for name, _, _ in granted)


def user(name: str, *permissions: str) -> str:
    from django.contrib.auth.models import Permission, User

    made = User.objects.create_user(name, password=PASSWORD, is_staff=True)
    made.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return name


def test_an_operator_finds_what_hangs_and_releases_it(browser: Browser, reserved: list[str]) -> None:
    from reservable.config import backend_for

    browser.log_in(user("olga", "view_reservation", "release_reservation", "view_video"), PASSWORD)
    browser.follow("Reservations")
    browser.shows(*reserved)
    browser.says("R&D <gpu-3>:977")
    browser.picture("reservations")
    book, *videos = reserved
    downloads = [name for name in videos if name.endswith(":download")]

    browser.follow("shop.Video (4)")
    browser.shows(*videos)
    browser.follow("download (3)")
    browser.shows(*downloads)
    browser.follow("Clear all filters")
    browser.shows(*reserved)
    browser.write("#searchbar", "PRESS-1")
    browser.click("#toolbar input[type=submit]")
    browser.shows(book)
    browser.write("#searchbar", "download")
    browser.click("#toolbar input[type=submit]")
    browser.shows(*downloads)

    browser.click(f'tr[data-name="{downloads[2]}"] input.action-select')
    browser.says("1 of 3 selected")
    browser.click("#action-toggle")
    browser.says("3 of 3 selected")
    browser.click(f'tr[data-name="{downloads[0]}"] input.action-select')
    browser.says("2 of 3 selected")
    browser.click("select[name=action] option[value=release]")
    browser.click("button[name=index]")
    browser.says("These 2 reservations are live.")
    browser.shows(*downloads[1:])
    browser.picture("release")

    browser.click(".cancel-link")
    browser.shows(*downloads)
    assert all(backend_for().holder(name) for name in reserved)

    browser.click("#action-toggle")
    browser.click("select[name=action] option[value=release]")
    browser.click("button[name=index]")
    browser.says("These 3 reservations are live.")
    backend_for().break_(downloads[0])
    assert backend_for().acquire(downloads[0], "another", "somebody else", timedelta(hours=1)) is not None
    browser.click("#release-form input[type=submit]")
    browser.says(f"2 released: {downloads[1]}, {downloads[2]}")
    browser.says("1 held by another grant now, which was left alone")
    browser.shows(downloads[0])
    browser.picture("released")
    assert [name for name in reserved if backend_for().holder(name) is None] == downloads[1:]


def test_the_page_is_laid_out_as_the_admins_own_lists_are(browser: Browser, reserved: list[str]) -> None:
    browser.log_in(user("olga", "view_reservation", "release_reservation"), PASSWORD)
    browser.open("/admin/reservable/reservation/")
    browser.shows(*reserved)
    table, choices, search = (browser.rect(one) for one in ("#result_list", "#changelist-filter", "#toolbar"))
    assert choices["x"] >= table["x"] + table["width"]
    assert abs(choices["y"] - search["y"]) < 50
    assert (
        browser.style(".breadcrumbs", "background-color") != "rgba(0, 0, 0, 0)"
    )  # they have the admin's style
    browser.click(".column-until .text a")
    assert browser.has(".column-until.sorted.ascending a.toggle.ascending")
    browser.click(".column-until a.toggle")
    assert browser.has(".column-until.sorted.descending a.toggle.descending")


def test_who_may_only_look_has_nothing_to_release_with(browser: Browser, reserved: list[str]) -> None:
    browser.log_in(user("vera", "view_reservation"), PASSWORD)
    browser.open("/admin/reservable/reservation/")
    browser.shows(*reserved)
    for selector in (
        "select[name=action]",
        "button[name=index]",
        "input[name=_selected_action]",
        "#action-toggle",
    ):
        assert not browser.has(selector)
    browser.picture("looking")


def test_no_token_is_in_the_source_of_any_page(browser: Browser, reserved: list[str]) -> None:
    browser.log_in(user("olga", "view_reservation", "release_reservation"), PASSWORD)
    browser.open("/admin/reservable/reservation/")
    browser.shows(*reserved)
    assert reserved[0] in browser.driver.page_source
    assert TOKEN not in browser.driver.page_source
    browser.click("#action-toggle")
    browser.click("select[name=action] option[value=release]")
    browser.click("button[name=index]")
    browser.says("These 5 reservations are live.")
    assert TOKEN not in browser.driver.page_source
    browser.click("#release-form input[type=submit]")
    browser.says("5 released")
    assert TOKEN not in browser.driver.page_source


def test_a_queue_is_looked_through_and_a_row_is_paused(browser: Browser) -> None:
    from tests.django.shop.models import Job

    for title in ("first", "second"):
        Job.objects.create(title=title)
    [lease] = Job.objects.claim(worker="worker-1")
    lease.fail(OSError("the server answers 500"))
    browser.log_in(user("quentin", "view_job", "change_job"), PASSWORD)
    browser.open("/admin/shop/job/")
    browser.says("pending: 2")
    browser.says("OSError: the server answers 500")
    browser.open("/admin/shop/job/?queue=due")
    browser.says("1 job")
    browser.click("#action-toggle")
    browser.click("select[name=action] option[value=queue_pause]")
    browser.click("button[name=index]")
    browser.says("1 paused.")
    browser.open("/admin/shop/job/")
    browser.says("paused: 1")
    browser.picture("queue")
    assert [job.title for job in Job.objects.filter(status="paused")] == ["second"]
    browser.open(f"/admin/shop/job/{lease.pk[0]}/change/")
    browser.says("the server answers 500")
    browser.picture("queue-row")
