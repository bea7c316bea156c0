from __future__ import annotations

import pickle
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest

import reservable
from reservable import ConfigurationError, NotSupported

pytestmark = pytest.mark.usefixtures("project")

Videos = Callable[[int], list[Any]]


def objects() -> Any:
    from tests.django.shop.models import Video

    return Video.objects


def test_the_line_of_a_management_command(videos: Videos) -> None:
    from django.core.management import call_command

    made = videos(3)
    assert made[1].reserve("another purpose")
    with objects().get(pk=made[2].pk).reservation(command()):
        out = StringIO()
        call_command("download", stdout=out)
    assert out.getvalue().split() == [str(made[0].pk), str(made[1].pk)]
    assert objects().ready_for_download().count() == 1


def command() -> Any:
    from tests.django.shop.management.commands.download import Command

    return Command()


def test_first_take_and_each(videos: Videos) -> None:
    one, two, three, four = videos(4)
    first = objects().first_reserved("k", "1h")
    assert first == one
    assert first.release("k") is True
    assert one.reserve("k")
    assert objects().take_reserved("k", limit=2) == [two, three]
    assert list(objects().each_reserved("k")) == [four]
    assert objects().first_reserved("k") is None
    assert objects().take_reserved("k", limit=9) == []


def test_in_the_querysets_own_order(videos: Videos) -> None:
    made = videos(30)
    assert objects().order_by("-place").first_reserved("k") == made[-1]
    assert [one.place for one in objects().order_by("-place").take_reserved("k", limit=12)] == [
        *range(28, 16, -1)
    ]
    assert objects().filter(place__lt=5).order_by("-place").reverse().first_reserved("k").place == 0


def test_each_yields_no_row_twice_though_it_is_released(videos: Videos) -> None:
    made = videos(25)
    seen = []
    for video in objects().each_reserved("k"):
        seen.append(video)
        assert video.release("k")
    assert seen == made


def test_chained_with_everything(videos: Videos) -> None:
    from tests.django.shop.models import Channel

    made = videos(3)
    channel = Channel.objects.create(name="c")
    objects().filter(pk__gt=made[0].pk).update(channel=channel)
    assert channel.videos.first_reserved("k") == made[1]
    found = objects().select_related("channel").filter(channel__name="c").only("title", "channel__name")
    again = found.distinct().first_reserved("k")
    assert again == made[2]
    assert again.channel.name == "c"
    assert objects().prefetch_related("channel__videos").exclude(pk__in=[]).first_reserved("k") == made[0]
    assert objects().none().first_reserved("k") is None


def test_a_slice_bounds_the_candidates(videos: Videos) -> None:
    made = videos(4)
    some = objects().order_by("place")[1:3]
    assert some.first_reserved("k") == made[1]
    assert some.first_reserved("k") == made[2]
    assert some.first_reserved("k") is None
    assert objects().first_reserved("k") == made[0]


def test_what_cannot_be_reserved_from_is_refused_by_its_clause_and_why(sqlite: str) -> None:
    from django.db.models import Count

    from tests.django.shop.models import Channel, Video

    every = Video.objects.all()
    refused = {
        "values.* no objects": every.values("id"),
        "union.* not rows of one table": every.union(every),
        "GROUP BY.* not rows of one table": every.annotate(n=Count("channel")),
        "select_for_update.* locks would belong to your transaction": every.select_for_update(),
    }
    for reason, queryset in refused.items():
        with pytest.raises(NotSupported, match=reason):
            queryset.first_reserved("k")
    with pytest.raises(ConfigurationError, match="limit"):
        every.take_reserved("k", limit=0)
    from reservable.django import ReservableQuerySet

    with pytest.raises(NotSupported, match="Channel is not Reservable"):
        ReservableQuerySet(Channel).first_reserved("k")


def test_a_row_that_no_longer_matches_is_given_back(videos: Videos, monkeypatch: pytest.MonkeyPatch) -> None:
    from reservable.django.candidates import Candidates

    one, two = videos(2)
    again = Candidates.again

    def later(self: Any, keys: Any) -> Any:
        objects().filter(pk=one.pk).update(path="done")
        return again(self, keys)

    monkeypatch.setattr(Candidates, "again", later)
    assert objects().ready_for_download().first_reserved("k") == two
    assert one.is_reserved("k") is False


def test_an_error_on_the_way_leaves_nothing_reserved(videos: Videos, monkeypatch: pytest.MonkeyPatch) -> None:
    from reservable.django.candidates import Candidates

    [one] = videos(1)

    def fail(self: Any, keys: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(Candidates, "again", fail)
    with pytest.raises(ZeroDivisionError):
        objects().first_reserved("k")
    assert one.is_reserved("k") is False


def test_what_is_found_until_an_instant_ends_then(videos: Videos) -> None:
    from datetime import UTC, datetime, timedelta

    [video] = videos(1)
    until = datetime.now(UTC) + timedelta(hours=1)
    assert type(video).objects.first_reserved("k", until) == video
    holder = video.reservation("k").holder()
    assert abs(holder.until - until) < timedelta(seconds=5)


def test_reserved_and_unreserved_are_filters(videos: Videos) -> None:
    one, two, three = videos(3)
    one.reserve("k")
    two.reserve("k", 0.05)
    three.reserve("other")
    from tests.waiting import eventually

    eventually(lambda: not two.is_reserved("k"))
    assert list(objects().reserved("k")) == [one]
    assert list(objects().unreserved("k").order_by("place")) == [two, three]
    assert objects().filter(title="").unreserved("k").filter(place__gt=1).count() == 1


def test_such_a_queryset_can_be_pickled_and_asked_later(videos: Videos) -> None:
    one, two = videos(2)
    one.reserve("k")
    text = pickle.dumps(objects().unreserved("k").query)
    again = objects().all()
    again.query = pickle.loads(text)
    assert list(again) == [two]
    assert list(pickle.loads(pickle.dumps(objects().reserved("k")))) == [one]


def test_rows_that_are_unreserved_for_this_very_purpose_are_found_though_they_are_ours_then(
    videos: Videos,
) -> None:
    every = videos(5)
    every[0].reserve("k")
    free = objects().unreserved("k").order_by("place")
    assert free.first_reserved("k") == every[1]
    assert free.take_reserved("k", limit=2) == every[2:4]
    assert list(free.each_reserved("k")) == every[4:]
    assert free.first_reserved("k") is None
    assert free.unreserved("other").first_reserved("other") is None


def test_reserved_knows_every_primary_key_that_sql_can_write(alias: str) -> None:
    from tests.django.shop.models import Book, Day, Film, Seat, Ticket

    rows: list[Any] = [
        Book(code="a/b: ü%'\\"),
        Book(code="plain"),
        Seat(hall=1, number=23),
        Seat(hall=12, number=3),
        Ticket(),
        Ticket(),
        Film(),
        Film(),
    ]
    for row in rows:
        row.save()
    for row in rows[::2]:
        assert row.reserve("k 100%")
    for row, other in zip(rows[::2], rows[1::2], strict=True):
        model = type(row)
        assert list(model.objects.reserved("k 100%")) == [row]
        assert list(model.objects.unreserved("k 100%")) == [other]
        assert model.objects.first_reserved("k 100%") == other
    with pytest.raises(NotSupported, match="DateField"):
        Day.objects.reserved("k")


def test_primary_keys_that_sql_cannot_write_are_asked_for_in_batches(alias: str) -> None:
    from datetime import date, timedelta

    from tests.django.shop.models import Day

    days = [date(2030, 1, 1) + timedelta(days=number) for number in range(40)]
    Day.objects.bulk_create([Day(date=day) for day in days])
    taken = Day.objects.take_reserved("k", limit=35)
    assert [one.date for one in taken] == days[:35]
    Day.objects.filter(date=days[36]).update(done=True)
    assert [one.date for one in Day.objects.filter(done=False).each_reserved("k")] == [days[35], *days[37:]]


def test_the_table_is_never_loaded(sqlite: str) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    objects().bulk_create([objects().model(place=place) for place in range(500)])
    with CaptureQueriesContext(connection) as queries:
        assert objects().first_reserved("k") is not None
    assert len(queries) == 2
    assert "LIMIT 10" in queries[0]["sql"]
    assert not any("token" in query["sql"] for query in queries)


def test_redis_in_batches(alias: str, fresh_database: Callable[[str], str]) -> None:
    backend = reservable.configure(fresh_database("redis"), prefix="shop:")
    made = objects().bulk_create([objects().model(place=place) for place in range(50)])
    every = list(objects().order_by("place"))
    assert len(made) == 50
    for video in every[:33]:
        assert video.reserve("k")
    assert objects().order_by("place").first_reserved("k") == every[33]
    assert objects().order_by("place").take_reserved("k", limit=100) == every[34:]
    assert len(list(backend.list("shop.video:*:k"))) == 50
    with pytest.raises(NotSupported, match="reserved\\(\\) and unreserved"):
        objects().unreserved("k")
    every[33].release("k")


def test_a_model_without_a_manager_has_ours_and_one_of_the_users_stays(project: object) -> None:
    from reservable.django import ReservableManager
    from tests.django.shop.models import Book, Chosen, Seat, Video

    assert isinstance(Seat.objects, ReservableManager)
    assert isinstance(Seat._default_manager, ReservableManager)
    assert Seat._default_manager is Seat._base_manager or isinstance(Chosen.objects, ReservableManager)
    assert type(Video.objects).__name__ == "ManagerFromVideoQuerySet"
    assert isinstance(Book.objects, ReservableManager)
