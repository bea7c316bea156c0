"""The admin's page of reservations, with reservations in Django's database, in Redis and in memory."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import reservable
from tests.django.project import pointed
from tests.server_process import free_port

pytestmark = pytest.mark.usefixtures("site")

PAGE = "/admin/reservable/reservation/"


@pytest.fixture
def site(sqlite: str) -> Iterator[None]:
    from django.contrib.admin.models import LogEntry
    from django.contrib.auth.models import User
    from django.contrib.sessions.models import Session
    from django.test import override_settings

    with override_settings(ROOT_URLCONF="tests.django.admin_urls"):
        yield
    for model in (LogEntry, Session, User):
        model.objects.all().delete()


@pytest.fixture(params=["table", "redis", "memory"])
def store(request: pytest.FixtureRequest, site: None, fresh_database: Callable[[str], str]) -> Iterator[str]:
    """Each kind of store in turn."""
    from django.test import override_settings

    urls = {"redis": lambda: fresh_database("redis"), "memory": lambda: "memory://"}
    if request.param == "table":
        yield "table"
    else:
        with override_settings(RESERVABLE={"URL": urls[request.param](), "PREFIX": "shop:"}):
            yield request.param


def browser(*permissions: str, superuser: bool = False) -> Any:
    """A client of somebody with these permissions."""
    from django.contrib.auth.models import Permission, User
    from django.test import Client

    user = User.objects.create(username=f"user{User.objects.count()}", is_staff=True, is_superuser=superuser)
    found = Permission.objects.filter(codename__in=permissions)
    assert len(found) == len(permissions)
    user.user_permissions.set(found)
    client = Client()
    client.force_login(user)
    return client


def viewer() -> Any:
    return browser("view_reservation")


def operator() -> Any:
    return browser("view_reservation", "release_reservation")


def video(**values: Any) -> Any:
    from tests.django.shop.models import Video

    return Video.objects.create(**values)


def shown(client: Any, query: str = "", page: str = PAGE) -> str:
    response = client.get(f"{page}{query}")
    assert response.status_code == 200
    return str(response.content.decode())


def names(html: str) -> list[str]:
    """The names on the page, in their order."""
    return re.findall(r'<tr data-name="([^"]*)"', html)


def boxes(html: str) -> list[str]:
    """The values of what can be chosen for an action or is about to be released."""
    return re.findall(r'name="_selected_action" value="([^"]*)"', html)


def release(client: Any, chosen: list[str], *, confirmed: bool = False, page: str = PAGE) -> Any:
    data = {"action": "release", "_selected_action": chosen, **({"confirmed": "yes"} if confirmed else {})}
    return client.post(page, data, follow=confirmed)


def told(response: Any) -> list[str]:
    """The messages on the page that follows."""
    listed = response.content.decode().partition('<ul class="messagelist">')[2].partition("</ul>")[0]
    return [unescape(text.strip()) for text in re.findall(r"<li[^>]*>(.*?)</li>", listed, re.DOTALL)]


def cells(html: str, name: str) -> dict[str, str]:
    """The columns of one row, as text without tags."""
    row = html.partition(f'<tr data-name="{name}"')[2].partition("</tr>")[0]
    found = re.findall(r'<td class="field-(\w+)[^"]*">(.*?)</td>', row, re.DOTALL)
    return {column: re.sub("<[^>]*>", "", text).strip() for column, text in found}


def test_what_is_reserved_is_shown_with_all_that_is_known_of_it(store: str) -> None:
    from django.utils.timezone import localtime

    one = video(title="Rainbow")
    held = one.reservation("download", "2 hours")
    held.acquire()
    try:
        html = shown(viewer())
        assert names(html) == [held.name]
        found = cells(html, held.name)
        assert found["model"] == "shop.Video"
        assert found["object"] == str(one)
        assert found["key"] == "download"
        assert found["owner"] == held.owner
        for column in ("since", "until"):
            there = localtime(getattr(held.holder(), column))
            assert found[column] == f"{there:%Y-%m-%d %H:%M:%S}"
        assert re.fullmatch(r"1:59:5\d", found["left"])
    finally:
        held.release()
    assert "Nothing is reserved." in shown(viewer())


@pytest.mark.parametrize("use_tz", [True, False])
def test_times_are_in_the_time_zone_of_the_project(use_tz: bool) -> None:
    from zoneinfo import ZoneInfo

    from django.test import override_settings

    client = viewer()
    with override_settings(USE_TZ=use_tz, TIME_ZONE="Pacific/Kiritimati"):
        held = video().reservation("k", "1h")
        assert held.acquire()
        html = shown(client)
        there = held.holder().until.astimezone(ZoneInfo("Pacific/Kiritimati"))
        assert cells(html, held.name)["until"] == f"{there:%Y-%m-%d %H:%M:%S}"
        assert "Times in Pacific/Kiritimati." in html


def test_no_token_is_anywhere(store: str) -> None:
    client = operator()
    held = video().reservation("download", "2 hours")
    held.acquire()
    token = held.token
    assert token
    html = shown(client)
    asked = release(client, boxes(html)).content.decode()
    done = release(client, boxes(asked), confirmed=True).content.decode()
    assert "1 released" in done
    for page in (html, asked, done):
        assert token not in page


def test_an_object_is_a_link_to_its_page_for_those_who_may_see_it(store: str) -> None:
    from tests.django.shop.models import Book

    one = video()
    one.reserve("k")
    link = f'<a href="/admin/shop/video/{one.pk}/change/">{one}</a>'
    assert link in shown(browser("view_reservation", "view_video"))
    Book.objects.create(code="a/b_c").reserve("k")
    assert '<a href="/admin/shop/book/a_2Fb_5Fc/change/">' in shown(browser("view_reservation", "view_book"))
    html = shown(viewer())
    assert "/change/" not in html
    assert cells(html, f"shop.video:{one.pk}:k")["object"] == str(one)


def test_a_site_of_the_projects_own_links_to_its_own_pages(store: str) -> None:
    from tests.django.shop.models import Book

    one = video()
    one.reserve("k")
    Book.objects.create(code="a/b").reserve("k")
    html = shown(browser(superuser=True), page="/own/reservable/reservation/")
    assert f'<a href="/own/shop/short/{one.pk}/change/">' in html  # a proxy is registered there
    assert cells(html, "shop.book:a%2Fb:k")["object"] == "Book object (a/b)"
    assert html.count("/change/") == 1


def test_rows_of_all_kinds_of_primary_keys_are_found() -> None:
    import datetime as dt
    import uuid

    from tests.django.shop.models import Book, Chosen, Day, Film, Seat, Ticket

    rows = [
        Book.objects.create(code="a:b/ü%"),
        Ticket.objects.create(id=uuid.UUID(int=5)),
        Seat.objects.create(hall=1, number=23),
        Seat.objects.create(hall=12, number=3),
        Day.objects.create(date=dt.date(2024, 2, 29)),
        Film.objects.create(),
        Chosen.objects.create(),
    ]
    for row in rows:
        assert row.reserve("k")
    html = shown(viewer())
    expected = [str(row) for row in rows]
    expected[5] = expected[5].replace("Film", "Video")  # it is a row of its parent's
    assert sorted(cells(html, name)["object"] for name in names(html)) == sorted(expected)


def test_what_no_row_or_model_is_known_of_is_shown_by_its_name(store: str) -> None:
    from datetime import timedelta

    from reservable.config import backend_for

    gone = video()
    gone.reserve("k")
    gone.delete()
    for name in (
        "videos:7:k",
        "shop.video:99999999999999999999:k",
        "shop.video:x:k",
        "shop.seat:1:k",
        "shop.book:%00:k",
    ):
        assert backend_for().acquire(name, name, "them", timedelta(hours=1)) is not None
    kept = video()
    kept.reserve("k")
    reservable.reservation("nightly report", "1h").acquire()
    client = operator()
    html = shown(client)
    assert len(names(html)) == 8
    assert cells(html, "videos:7:k") | {"since": "", "until": "", "left": ""} == {
        "model": "videos", "object": "7", "key": "k", "owner": "them", "since": "", "until": "", "left": "",
    }  # fmt: skip
    assert cells(html, f"shop.video:{kept.pk}:k")["object"] == str(kept)
    assert cells(html, "shop.video:x:k")["object"] == "x"
    assert cells(html, "nightly%20report")["key"] == "nightly report"
    assert cells(html, "nightly%20report")["model"] == "-"
    asked = release(client, boxes(html)).content.decode()
    assert len(boxes(asked)) == 8
    release(client, boxes(asked), confirmed=True)
    assert names(shown(client)) == []


@pytest.mark.parametrize("said", [None, 7, "", ZeroDivisionError("no")])
def test_an_object_that_has_no_text_is_shown_by_its_primary_key(
    said: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.core.management import call_command

    from tests.django.shop.models import Video

    def text(_: Any) -> Any:
        if isinstance(said, Exception):
            raise said
        return said

    one = video()
    one.reserve("k")
    name = f"shop.video:{one.pk}:k"
    monkeypatch.setattr(Video, "__str__", text)
    client = operator()
    html = shown(client)
    assert cells(html, name)["object"] == str(one.pk)
    assert cells(release(client, boxes(html)).content.decode(), name)["object"] == str(one.pk)
    out = StringIO()
    call_command("reservable", "show", name, stdout=out)
    assert f"{one.pk} ({one.pk})" in out.getvalue()


HOSTILE = "<script>alert('x')</script>\"'&amp;"


def test_everything_is_escaped(store: str) -> None:
    from datetime import timedelta

    from django.utils.html import escape

    from reservable.config import backend_for
    from reservable.names import encode, row_name
    from tests.django.shop.models import Book

    Book.objects.create(code=HOSTILE)
    client = operator()
    for name in (row_name("shop.book", encode(HOSTILE), HOSTILE), row_name(encode(HOSTILE), "1", "k")):
        backend_for().acquire(name, name, HOSTILE, timedelta(hours=1))
    html = shown(
        client,
        f"?q={encode(HOSTILE)}&model={encode(encode(HOSTILE))}&key={encode(encode(HOSTILE))}&o={encode(HOSTILE)}",
    )
    assert HOSTILE not in html
    html = shown(client)
    assert len(names(html)) == 2
    asked = release(client, boxes(html)).content.decode()
    done = release(client, boxes(asked), confirmed=True).content.decode()
    for page in (html, asked, done):
        assert "<script>alert" not in page
    assert escape(HOSTILE) in html
    assert escape(HOSTILE) in asked


@pytest.fixture
def many(site: None) -> list[Any]:
    """Ten videos, each reserved for two keys."""
    from datetime import timedelta

    from reservable.config import backend_for

    made = [video(place=place) for place in range(10)]
    for one in made:
        for key in ("download", "encode"):
            backend_for().acquire(
                f"shop.video:{one.pk}:{key}", f"{one.pk}{key}", f"host-{one.place}:17", timedelta(hours=1)
            )
    reservable.reservation("report", "2h").acquire()
    return made


def test_filters_and_their_counts(many: list[Any]) -> None:
    client = viewer()
    html = shown(client)
    assert len(names(html)) == 21
    assert '<a href="?model=shop.video">shop.Video (20)</a>' in html
    assert '<a href="?model=%3A">without a model (1)</a>' in html
    assert '<a href="?key=encode">encode (10)</a>' in html
    assert len(names(shown(client, "?model=shop.video"))) == 20
    assert names(shown(client, "?model=:")) == ["report"]
    assert names(shown(client, "?key=encode")) == [f"shop.video:{one.pk}:encode" for one in many]
    both = shown(client, "?model=shop.video&key=download&q=HOST-3")
    assert names(both) == [f"shop.video:{many[3].pk}:download"]
    assert (
        '<li class="selected"><a href="?model=shop.video&amp;key=download&amp;q=HOST-3">download (10)</a>'
        in both
    )
    nothing = shown(client, "?model=no.such")
    assert "Nothing is reserved that matches." in nothing
    assert "no.such (0)" in nothing


def test_search_by_owner_or_name_as_it_is_and_as_it_is_shown(many: list[Any]) -> None:
    from tests.django.shop.models import Book

    Book.objects.create(code="Zoë Ärger").reserve("read aloud")
    client = viewer()
    assert names(shown(client, "?q=host-7:17")) == [
        f"shop.video:{many[7].pk}:{key}" for key in ("download", "encode")
    ]
    assert names(shown(client, f"?q=video:{many[2].pk}:ENC")) == [f"shop.video:{many[2].pk}:encode"]
    assert len(names(shown(client, "?q=zoë ärger"))) == 1
    assert len(names(shown(client, "?q=aloud read"))) == 1
    assert len(names(shown(client, "?q=read%20aloud"))) == 1
    assert names(shown(client, "?q=nobody")) == []


def test_pages_keep_the_filters(many: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from reservable.django.admin import ReservationAdmin

    monkeypatch.setattr(ReservationAdmin, "list_per_page", 6)
    client = viewer()
    first, last = (shown(client, f"?key=encode&p={page}") for page in (1, 2))
    assert names(first) + names(last) == [f"shop.video:{one.pk}:encode" for one in many]
    assert len(names(last)) == 4
    assert '<a href="?key=encode&amp;p=2">2</a>' in first
    assert '<a href="?model=shop.video">' in last
    assert '<a href="?key=download">' in last  # another filter begins at its first page
    assert names(shown(client, "?key=encode&p=99")) == names(last)
    assert names(shown(client, "?key=encode&p=x")) == names(first)


def test_in_the_order_of_a_column(many: list[Any]) -> None:
    client = viewer()
    up, down = (
        [cells(html, name)["owner"] for name in names(html)]
        for html in (shown(client, "?o=owner"), shown(client, "?o=-owner"))
    )
    assert up == sorted(up)
    assert down == up[::-1]
    assert len({*up}) == 11
    assert names(shown(client, "?o=-until"))[0] == "report"
    assert names(shown(client, "?o=token")) == names(shown(client))
    assert '<a href="?o=-since">Since</a>' in shown(client, "?o=since")


def test_looking_and_releasing_are_two_permissions(store: str) -> None:
    one = video()
    one.reserve("k")
    name = f"shop.video:{one.pk}:k"
    looking = viewer()
    html = shown(looking)
    assert names(html) == [name]
    assert boxes(html) == []
    assert "Release selected" not in html
    [value] = boxes(shown(operator()))
    for confirmed in (False, True):
        assert release(looking, [value], confirmed=confirmed).status_code == 403
    assert browser("release_reservation").get(PAGE).status_code == 403
    assert release(browser("release_reservation"), [value], confirmed=True).status_code == 403
    assert browser().get(PAGE).status_code == 403
    from django.test import Client

    assert Client().get(PAGE).status_code == 302
    assert one.is_reserved("k")


def test_a_release_needs_the_token_of_its_form(store: str) -> None:
    from django.test import Client

    one = video()
    one.reserve("k")
    client = operator()
    [value] = boxes(shown(client))
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    assert release(strict, [value], confirmed=True).status_code == 403
    assert one.is_reserved("k")


def test_nothing_can_be_added_changed_or_deleted() -> None:
    one = video()
    one.reserve("k")
    client = browser(superuser=True)
    assert "/admin/reservable/reservation/add/" not in shown(client, page="/admin/")
    for place in (
        "add/",
        f"shop.video:{one.pk}:k/change/",
        f"shop.video:{one.pk}:k/delete/",
        f"shop.video:{one.pk}:k/history/",
    ):
        assert client.get(PAGE + place).status_code == 404
        assert client.post(PAGE + place, {"post": "yes"}).status_code == 404
    data = {"action": "delete_selected", "_selected_action": [f"shop.video:{one.pk}:k"], "post": "yes"}
    assert told(client.post(PAGE, data, follow=True)) == ["No action selected."]
    assert one.is_reserved("k")


def test_a_release_asks_first_and_lists_what_it_would_break(store: str) -> None:
    one, other = video(title="a"), video(title="b")
    assert one.reserve("k")
    assert other.reserve("k")
    client = operator()
    chosen = boxes(shown(client))
    asked = release(client, chosen[:1]).content.decode()
    assert names(asked) == [f"shop.video:{one.pk}:k"]
    assert boxes(asked) == chosen[:1]
    assert one.is_reserved("k")
    done = release(client, boxes(asked), confirmed=True)
    assert told(done) == [f"1 released: shop.video:{one.pk}:k"]
    assert done.redirect_chain == [(PAGE, 302)]
    assert not one.is_reserved("k")
    assert other.is_reserved("k")


def test_a_release_goes_back_to_the_page_it_came_from(store: str) -> None:
    one = video()
    one.reserve("k")
    client = operator()
    page = f"{PAGE}?key=k&o=since"
    asked = release(client, boxes(shown(client)), page=page).content.decode()
    done = release(client, boxes(asked), confirmed=True, page=page)
    assert done.redirect_chain == [(page, 302)]
    assert not one.is_reserved("k")


def test_who_holds_the_name_by_now_keeps_it(store: str) -> None:
    one, again = video(), None
    assert one.reserve("k", "1h")
    client = operator()
    [value] = boxes(shown(client))
    assert one.release("k")
    again = type(one).objects.get(pk=one.pk)
    assert again.reserve("k", "1h")  # another grant of the same name, and of the same owner
    for confirmed in (False, True):
        response = client.post(
            PAGE,
            {"action": "release", "_selected_action": value, "confirmed": "yes" if confirmed else ""},
            follow=True,
        )
        [message] = told(response)
        assert message.startswith(
            f"1 held by another grant now, which was left alone: shop.video:{one.pk}:k (by "
        )
    assert again.is_reserved("k")
    assert again.release("k")
    response = release(client, [value], confirmed=True)
    assert told(response) == [f"1 over already: shop.video:{one.pk}:k"]


def test_one_that_was_extended_meanwhile_is_still_the_one_that_was_shown(store: str) -> None:
    one = video()
    held = one.reservation("k", "1h")
    assert held.acquire()
    client = operator()
    [value] = boxes(shown(client))
    assert held.extend("3 hours")
    response = release(client, [value], confirmed=True)
    assert told(response) == [f"1 released: {held.name}"]
    assert held.release() is False


def test_the_others_of_a_choice_are_released_all_the_same(store: str) -> None:
    rows = [video() for _ in range(3)]
    for row in rows:
        row.reserve("k")
    client = operator()
    chosen = boxes(shown(client))
    rows[0].release("k")
    rows[1].release("k")
    type(rows[1]).objects.get(pk=rows[1].pk).reserve("k")
    asked = release(client, chosen).content.decode()
    assert names(asked) == [f"shop.video:{rows[2].pk}:k"]
    assert f"shop.video:{rows[0].pk}:k: over already" in asked
    assert f"shop.video:{rows[1].pk}:k: held by another grant now" in asked
    assert len(told(release(client, chosen, confirmed=True))) == 3
    assert [row.is_reserved("k") for row in rows] == [False, True, False]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"action": ""}, "No action selected."),
        ({"action": "release"}, "No reservations were selected: nothing is released."),
    ],
)
def test_a_form_that_says_nothing_does_nothing(data: dict[str, str], message: str) -> None:
    one = video()
    one.reserve("k")
    assert told(operator().post(PAGE, data, follow=True)) == [message]
    assert one.is_reserved("k")


@pytest.mark.parametrize(
    "value", ["", " ", "x", "x y", "7", "7 ", "-1 shop.video:1:k", "²  a", "7 no such:name:%"]
)
def test_a_form_that_says_nonsense_does_nothing(value: str) -> None:
    one = video()
    one.reserve("k")
    assert (
        operator()
        .post(PAGE, {"action": "release", "_selected_action": value, "confirmed": "yes"}, follow=True)
        .status_code
        == 200
    )
    assert one.is_reserved("k")


def test_what_was_released_is_in_the_log_of_the_admin() -> None:
    from django.contrib.admin.models import DELETION, LogEntry

    one = video()
    one.reserve("k")
    client = browser(superuser=True)
    release(client, boxes(shown(client)), confirmed=True)
    entry = LogEntry.objects.get()
    assert (entry.action_flag, entry.object_repr) == (DELETION, f"shop.video:{one.pk}:k")
    assert f"shop.video:{one.pk}:k" in shown(client, page="/admin/")


def test_stores_of_single_models_are_shown_and_released_as_well(
    monkeypatch: pytest.MonkeyPatch, fresh_database: Callable[[str], str]
) -> None:
    from tests.django.shop.models import Book, Ticket, Video

    url = fresh_database("redis")
    for model in (Book, Ticket):
        monkeypatch.setattr(model, "__reservable_backend__", url, raising=False)
    rows = [Video.objects.create(), Book.objects.create(code="b"), Ticket.objects.create()]
    for row in rows:
        row.reserve("k")
    client = operator()
    html = shown(client)
    assert len(names(html)) == len(set(names(html))) == 3
    release(client, boxes(html), confirmed=True)
    assert not any(row.is_reserved("k") for row in rows)


def test_a_store_that_cannot_be_reached_is_said_and_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.django.shop.models import Book

    nowhere = f"redis://:secret@127.0.0.1:{free_port()}/0"
    monkeypatch.setattr(Book, "__reservable_backend__", nowhere, raising=False)
    one = video()
    one.reserve("k")
    client = operator()
    html = shown(client)
    assert names(html) == [f"shop.video:{one.pk}:k"]
    assert '<p class="errornote">' in html
    assert "secret" not in html
    missing = told(release(client, ["5 shop.book:b:k"], confirmed=True))
    assert len(missing) == 1
    assert missing[0].startswith("1 a store failed, so it may still stand: shop.book:b:k (")
    assert told(release(client, boxes(html), confirmed=True)) == [f"1 released: shop.video:{one.pk}:k"]


def test_a_setting_that_cannot_work_is_said() -> None:
    from django.test import override_settings

    client = operator()
    with override_settings(RESERVABLE={"URL": "nonsense://there"}):
        html = shown(client)
        assert '<p class="errornote">RESERVABLE[&#x27;URL&#x27;]' in html
        [message] = told(release(client, ["5 shop.video:1:k"], confirmed=True))
        assert message.startswith("RESERVABLE['URL']")


@pytest.mark.parametrize("mode", ["DEFERRED", "IMMEDIATE"])
def test_a_transaction_around_each_request_is_not_in_its_way(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    from django.db import connection, connections

    one = video()
    one.reserve("k")
    client = operator()
    connection.close()
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    monkeypatch.setitem(connections.settings["default"]["OPTIONS"], "transaction_mode", mode)
    try:
        asked = release(client, boxes(shown(client))).content.decode()
        assert told(release(client, boxes(asked), confirmed=True)) == [f"1 released: shop.video:{one.pk}:k"]
    finally:
        connection.close()


def test_reservations_in_another_database_than_the_users(project: Any) -> None:
    one = video()
    with pointed(reservations="other"):
        one.reserve("k")
        client = operator()
        html = shown(client)
        assert names(html) == [f"shop.video:{one.pk}:k"]
        release(client, boxes(html), confirmed=True)
        assert not one.is_reserved("k")


def test_what_is_over_is_not_shown() -> None:
    from datetime import timedelta

    from reservable.config import backend_for
    from tests.waiting import eventually

    backend_for().acquire("shop.video:1:k", "t", "o", timedelta(milliseconds=50))
    client = viewer()
    eventually(lambda: not names(shown(client)))


def test_the_page_asks_each_model_once() -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client = viewer()

    def asked(rows: int) -> int:
        for row in (video() for _ in range(rows)):
            row.reserve("k")
        with CaptureQueriesContext(connection) as queries:
            shown(client)
        return len(queries)

    assert asked(1) == asked(20)


def test_under_asgi() -> None:
    import asyncio

    from django.test import AsyncClient

    one = video()
    one.reserve("k")
    client = operator()
    [value] = boxes(shown(client))
    asgi = AsyncClient()
    asgi.cookies = client.cookies

    async def requests() -> None:
        assert (await asgi.get(PAGE)).status_code == 200
        await asgi.post(PAGE, {"action": "release", "_selected_action": value, "confirmed": "yes"})

    asyncio.run(requests())
    assert not one.is_reserved("k")


WITHOUT = """
import sys
from tests.django.project import configure
configure({"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}},
    INSTALLED_APPS=["reservable.django", "tests.django.shop"], MIDDLEWARE=[], TEMPLATES=[])
from django.core.management import call_command
call_command("migrate", verbosity=0, run_syncdb=True)
call_command("check", fail_level="WARNING", databases=["default"])
from tests.django.shop.models import Video
assert Video.objects.create().reserve("k")
call_command("reservable", "list")
loaded = [name for name in sys.modules if name.startswith(("django.contrib.admin", "django.contrib.auth", "reservable.django.admin"))]
assert not loaded, loaded
"""


def test_a_project_without_the_admin_loads_none_of_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT, str(tmp_path / "db.sqlite")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "shop.video:1:k" in done.stdout
