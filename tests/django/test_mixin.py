from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from reservable import AlreadyReserved, InvalidKey, UnidentifiedInstance

pytestmark = pytest.mark.usefixtures("project")


def again(row: Any) -> Any:
    """The same row as another process has it."""
    return type(row)._base_manager.get(pk=row.pk)


def test_reserve_refuse_and_release(videos: Callable[[int], list[Any]]) -> None:
    video, other = videos(2)
    same = again(video)
    assert video.reserve("download", "+6 hours") is True
    assert video.is_reserved("download") is True
    assert video.reserve("download") is False
    assert same.reserve("download") is False
    assert same.release("download") is False
    assert same.reserve("thumbnail") is True
    assert other.reserve("download") is True
    assert video.release("download") is True
    assert video.release("download") is False
    assert same.reserve("download") is True


def test_an_operator_releases_whoever_holds(videos: Callable[[int], list[Any]]) -> None:
    [video] = videos(1)
    video.reserve("download")
    assert again(video).release("download") is True
    assert video.release("download") is False


def test_a_block_releases_and_refuses(videos: Callable[[int], list[Any]]) -> None:
    [video] = videos(1)
    with video.reservation("download", "1h") as held:
        assert held.name == f"shop.video:{video.pk}:download"
        with pytest.raises(AlreadyReserved), again(video).reservation("download"):
            raise AssertionError
    assert video.is_reserved("download") is False


def test_renewed_by_a_thread_of_its_own(videos: Callable[[int], list[Any]]) -> None:
    from tests.waiting import eventually

    [video] = videos(1)
    with video.reservation("download", 3, renew=True) as held:
        end = held.expires_at
        eventually(lambda: held.expires_at > end)
        held.check()


def test_only_and_deferred_instances_are_rows_as_any_other(videos: Callable[[int], list[Any]]) -> None:
    from tests.django.shop.models import Video

    videos(1)
    assert Video.objects.only("title").get().reserve("download")
    assert Video.objects.defer("title").get().reserve("download") is False


def test_a_proxy_is_the_same_row(videos: Callable[[int], list[Any]]) -> None:
    from tests.django.shop.models import Short

    [video] = videos(1)
    assert video.reserve("download")
    assert Short.objects.get().reserve("download") is False


def test_a_child_and_its_parent_are_the_same_row(alias: str) -> None:
    from tests.django.shop.models import Film, Video

    film = Film.objects.create()
    assert film.reserve("download")
    parent = Video.objects.get(pk=film.pk)
    assert parent.reserve("download") is False
    assert Film.objects.only("minutes").get().reserve("download") is False
    assert Film.objects.first_reserved("download") is None
    assert film.release("download")
    assert Film.objects.first_reserved("download") == film
    assert parent.is_reserved("download")


def test_text_uuid_composite_and_other_primary_keys(alias: str) -> None:
    from datetime import date

    from tests.django.shop.models import Book, Chosen, Day, Seat, Ticket

    rows: list[tuple[Any, str]] = [
        (Book(code="a/b: ü"), "shop.book:a%2Fb%3A%20%C3%BC:k"),
        (Seat(hall=1, number=23), "shop.seat:1,23:k"),
        (Seat(hall=12, number=3), "shop.seat:12,3:k"),
        (Ticket(id=UUID(int=5)), f"shop.ticket:{UUID(int=5)}:k"),
        (Day(date=date(2030, 1, 2)), "shop.day:2030-01-02:k"),
        (Chosen(id=3), "old%20name:3:k"),
    ]
    for row, name in rows:
        row.save()
        assert row.reservation("k").name == name
        assert row.reserve("k")
        assert again(row).reserve("k") is False


def test_equal_rows_have_one_name_however_they_were_typed(sqlite: str) -> None:
    from tests.django.shop.models import Ticket, Video

    text = "DEADBEEF-0000-0000-0000-000000000000"
    assert Ticket(id=text).reservation("k").name == Ticket(id=UUID(text)).reservation("k").name
    assert len({Video(pk=pk).reservation("k").name for pk in (1, "1", True)}) == 1
    with pytest.raises(InvalidKey):
        Video(pk="one").reserve("k")


def test_without_a_primary_key_there_is_nothing_to_reserve(sqlite: str) -> None:
    from tests.django.shop.models import Seat, Video

    for row in (Video(), Seat(hall=1)):
        with pytest.raises(UnidentifiedInstance):
            row.reserve("k")
        with pytest.raises(UnidentifiedInstance):
            row.reservation("k")


def test_a_row_that_was_deleted_can_be_released_and_not_reserved(videos: Callable[[int], list[Any]]) -> None:
    [video] = videos(1)
    assert video.reserve("download")
    pk = video.pk
    video.delete()
    with pytest.raises(UnidentifiedInstance):
        video.reserve("download")
    assert type(video)(pk=pk).is_reserved("download")
    assert video.release("download") is True
    assert type(video)(pk=pk).is_reserved("download") is False


def test_what_a_row_was_reserved_for_is_known_when_it_is_deleted(videos: Callable[[int], list[Any]]) -> None:
    [video] = videos(1)
    other = type(video).objects.get()
    assert video.reserve("download")
    assert other.reserve("encode")
    with video.reservation("check"):
        video.delete()
        assert video.is_reserved("check")
    assert not video.is_reserved("check")
    assert video.is_reserved("download")
    assert video.release("download") is True
    assert not video.is_reserved("download")
    assert video.release("download") is False
    assert video.release("encode") is True  # which it never tried itself
    assert not other.is_reserved("encode")
    assert other.release("encode") is False


def test_a_grant_is_released_by_the_name_it_was_made_under(videos: Callable[[int], list[Any]]) -> None:
    video, other = videos(2)
    pk = video.pk
    assert video.reserve("download")
    video.pk = other.pk
    assert other.is_reserved("download") is False
    assert video.is_reserved("download") is True
    assert video.release("download") is True
    assert type(video)(pk=pk).is_reserved("download") is False


def test_options_that_are_given_for_a_grant_that_stands_are_honoured(
    videos: Callable[[int], list[Any]],
) -> None:
    [video] = videos(1)
    assert video.reserve("download", 60)
    video.reservation("download", at_least=30)
    assert video.release("download") is True
    assert 20 < again(video).reservation("download").holder().remaining < 31


def test_a_copy_holds_nothing(sqlite: str) -> None:
    from tests.django.shop.models import Video

    video = Video.objects.create()
    video.reserve("download", "1h")
    for one in (copy.copy(video), copy.deepcopy(video), pickle.loads(pickle.dumps(video))):
        assert one == video
        assert one.reserve("download") is False
        assert one.release("download") is False
    assert video.release("download") is True
    original = video.pk
    video.pk = None
    video._state.adding = True
    video.save()
    assert video.pk != original
    assert video.reserve("download")
    assert not Video(pk=original).is_reserved("download")


def test_a_migration_names_the_base_as_users_import_it(project: object) -> None:
    from django.db.migrations.writer import MigrationWriter

    from reservable.django import Reservable

    assert MigrationWriter.serialize(Reservable) == (
        "reservable.django.Reservable",
        {"import reservable.django"},
    )


def test_a_whole_save_by_another_does_not_take_the_reservation(videos: Callable[[int], list[Any]]) -> None:
    [video] = videos(1)
    old = again(video)
    assert video.reserve("download")
    old.title = "new"
    old.save()
    assert again(video).title == "new"
    assert again(video).reserve("download") is False


def test_a_key_that_is_an_object_stands_for_its_class(sqlite: str) -> None:
    from tests.django.shop.management.commands.download import Command
    from tests.django.shop.models import Video

    video = Video.objects.create()
    name = video.reservation(Command()).name
    assert name.endswith(":tests.django.shop.management.commands.download.Command")
    with pytest.raises(InvalidKey):
        video.reserve(Video())
