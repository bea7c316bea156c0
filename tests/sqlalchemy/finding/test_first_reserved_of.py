"""`first_reserved_of`: the first free row of objects that are loaded already."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select

from reservable import BackendError, NotSupported, UnidentifiedInstance, configure, first_reserved_of
from reservable.backends.memory import MemoryBackend
from tests.sqlalchemy.finding.models import Author, Page, Render, Review, Task, Video
from tests.sqlalchemy.finding.worlds import KEY, World, statements


def test_the_first_free_one_in_their_own_order(world: World):
    world.add_videos(4)
    world.reserve(4)
    videos = list(world.session().scalars(select(Video).order_by(Video.id.desc())))
    found = first_reserved_of(videos, KEY, "1 hour")
    assert found is videos[1]
    assert found.reservation(KEY).held
    assert found.release(KEY)


def test_none_when_all_are_reserved_and_when_there_are_none(world: World):
    world.add_videos(2)
    world.reserve(1, 2)
    assert first_reserved_of(world.session().scalars(select(Video)), KEY) is None
    assert first_reserved_of([], KEY) is None


def test_many_are_asked_about_in_batches(server: World):
    server.add_videos(350)
    server.reserve_many(range(1, 341))
    videos = server.session().scalars(select(Video).order_by(Video.id)).all()
    with statements() as sent:
        assert first_reserved_of(videos, KEY) is videos[340]
    assert len(sent) < 10


def test_no_more_are_fetched_than_are_needed(world: World):
    world.add_videos(300)
    videos = world.session().scalars(select(Video).order_by(Video.id)).all()
    fetched = []

    def lazily() -> Iterator[Video]:
        for video in videos:
            fetched.append(video.id)
            yield video

    assert first_reserved_of(lazily(), KEY) is videos[0]
    assert len(fetched) <= 101


def test_objects_of_several_classes_and_sessions_are_asked_in_their_order(world: World):
    world.add(Video(id=1), Page(url="a"), Review(id=1, text="x"), Task(id=1), Render(id=2))
    world.reserve(1)
    world.reserve("a", model=Page)
    one, two = world.session(), world.session()
    mixed = [
        one.get_one(Video, 1),
        one.get_one(Page, "a"),
        two.get_one(Task, 1),
        two.get_one(Render, 2),
        one.get_one(Review, 1),
    ]
    assert first_reserved_of(mixed, KEY) is mixed[2]
    assert first_reserved_of(mixed, KEY) is mixed[3]
    assert first_reserved_of(mixed, KEY) is mixed[4]
    assert first_reserved_of(mixed, KEY) is None


def test_those_that_were_refused_do_not_release_somebody_elses_grant(world: World):
    world.add_videos(3)
    world.reserve(1)
    videos = world.session().scalars(select(Video).order_by(Video.id)).all()
    assert first_reserved_of(videos, KEY) is videos[1]
    assert [video.release(KEY) for video in videos[:2]] == [False, True]
    assert world.reserved() == [1]


def test_an_object_without_a_row_is_refused(world: World):
    with pytest.raises(UnidentifiedInstance):
        first_reserved_of([Video(title="never stored")], KEY)


def test_objects_without_a_session_need_a_configured_backend(memory: World):
    configure("memory://")
    try:
        assert first_reserved_of([Video(id=7), Video(id=8)], KEY).id == 7  # type: ignore[union-attr]
        assert first_reserved_of([Video(id=7), Video(id=8)], KEY).id == 8  # type: ignore[union-attr]
    finally:
        configure()


def test_the_same_object_twice_is_asked_once(world: World):
    world.add_videos(1)
    video = world.session().get_one(Video, 1)
    assert first_reserved_of([video, video], KEY) is video
    assert first_reserved_of([video, video], KEY) is None
    assert video.release(KEY)


def test_a_time_that_is_over_before_the_answer_came_is_an_error_and_gives_it_back():
    class Slow(MemoryBackend):
        def acquire_first(self, *arguments: Any) -> Any:
            grant = super().acquire_first(*arguments)
            time.sleep(0.02)
            return grant

    backend = configure(Slow())
    with pytest.raises(BackendError, match="longer"):
        first_reserved_of([Video(id=1)], KEY, 0.01)
    assert backend.holder(f"videos:1:{KEY}") is None


@pytest.mark.parametrize("wrong", [[1], [None], ["a"], [Video], None, Video(id=1)])
def test_what_is_no_list_of_instances_is_refused(wrong: Any):
    configure("memory://")
    with pytest.raises(NotSupported, match="instances"):
        first_reserved_of(wrong, KEY)


def test_classes_without_the_mixin_are_refused():
    configure("memory://")
    with pytest.raises(NotSupported, match=r"class Author\(Reservable, …\)"):
        first_reserved_of([Author(id=1)], KEY)
