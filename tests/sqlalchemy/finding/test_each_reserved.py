"""`each_reserved`: the next free row, until none is left."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from reservable import each_reserved
from tests.sqlalchemy.finding.models import Tag, Video
from tests.sqlalchemy.finding.worlds import KEY, World, statements
from tests.waiting import eventually

WAITING = select(Video).where(Video.path.is_(None)).order_by(Video.id)


def test_nothing_is_reserved_before_the_first_row_is_asked_for(world: World):
    world.add_videos(3)
    rows = each_reserved(world.session(), WAITING, KEY)
    assert world.reserved() == []
    assert next(rows).id == 1
    assert world.reserved() == [1]


def test_only_what_was_yielded_is_held(world: World):
    world.add_videos(250)
    rows = each_reserved(world.session(), WAITING, KEY)
    got = [next(rows).id for _ in range(5)]
    assert got == [1, 2, 3, 4, 5]
    assert world.reserved() == got


def test_every_free_row_comes_once_and_stays_reserved(world: World):
    world.add_videos(120)
    world.reserve(3, 110)
    got = [video.id for video in each_reserved(world.session(), WAITING, KEY)]
    assert got == [number for number in range(1, 121) if number not in (3, 110)]
    assert len(world.reserved()) == 120


def test_a_row_released_in_the_loop_that_still_matches_does_not_come_again(world: World):
    world.add_videos(12)
    got = []
    for video in each_reserved(world.session(), WAITING, KEY):
        got.append(video.id)
        assert video.release(KEY)
        assert len(got) <= 12
    assert got == list(range(1, 13))
    assert world.reserved() == []


def test_rows_released_later_in_the_loop_do_not_come_again(world: World):
    world.add_videos(6)
    got: list[Video] = []
    for video in each_reserved(world.session(), WAITING, KEY):
        got.append(video)
        if len(got) == 6:
            for one in got:
                one.release(KEY)
        assert len(got) <= 6
    assert [video.id for video in got] == list(range(1, 7))


def test_a_row_whose_time_is_over_does_not_come_again(shared: World):
    shared.add_videos(2)
    got = []
    for video in each_reserved(shared.session(), WAITING, KEY, 0.3):
        got.append(video.id)
        eventually(lambda: not video.is_reserved(KEY))  # noqa: B023 - asked at once
        assert len(got) <= 2
    assert got == [1, 2]


def test_a_row_that_becomes_free_while_iterating_comes_at_last(world: World):
    world.add_videos(3)
    other = world.session()
    blocked = other.get_one(Video, 1)
    assert blocked.reserve(KEY, "1 hour")
    other.commit()
    got = []
    for video in each_reserved(world.session(), WAITING, KEY):
        got.append(video.id)
        if video.id == 2:
            assert blocked.release(KEY)
    assert got in ([2, 1, 3], [2, 3, 1])


def test_a_row_added_while_iterating_comes_too(shared: World):
    shared.add_videos(1)
    got = []
    for video in each_reserved(shared.session(), WAITING, KEY):
        got.append(video.id)
        if len(got) < 4:
            shared.add(Video(id=video.id + 1))
    assert got == [1, 2, 3, 4]


def test_a_row_that_stops_matching_while_iterating_does_not_come(shared: World):
    shared.add_videos(4)
    got = []
    for video in each_reserved(shared.session(), WAITING, KEY):
        got.append(video.id)
        shared.run(f"UPDATE videos SET path = '/x' WHERE id = {video.id + 1}")
    assert got == [1, 3]


def test_leaving_the_loop_keeps_what_was_yielded_and_nothing_else(world: World):
    world.add_videos(5)
    for video in each_reserved(world.session(), WAITING, KEY):
        if video.id == 2:
            break
    assert world.reserved() == [1, 2]


def test_an_error_in_the_loop_leaves_the_releasing_to_the_caller(world: World):
    world.add_videos(3)

    def loop() -> None:
        for video in each_reserved(world.session(), WAITING, KEY):
            raise KeyError(video.id)

    with pytest.raises(KeyError):
        loop()
    assert world.reserved() == [1]


def test_closing_the_iterator_ends_it(world: World):
    world.add_videos(3)
    rows = each_reserved(world.session(), WAITING, KEY)
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert list(rows) == []
    assert world.reserved() == [1]


def test_the_caller_may_commit_in_the_loop(world: World):
    world.add_videos(30)
    session = world.session()
    for video in each_reserved(session, WAITING, KEY):
        video.path = f"/{video.id}"
        session.commit()
        assert video.release(KEY)
    with world.engine.connect() as connection:
        left = connection.exec_driver_sql("SELECT count(*) FROM videos WHERE path IS NULL").scalar()
    assert left == 0
    assert world.reserved() == []


def test_two_iterations_share_the_rows(shared: World):
    shared.add_videos(20)
    one = each_reserved(shared.session(), WAITING, KEY)
    two = each_reserved(shared.session(), WAITING, KEY)
    got = []
    for _ in range(10):
        got += [next(one).id, next(two).id]
    assert sorted(got) == list(range(1, 21))
    assert [next(one, None), next(two, None)] == [None, None]


def test_rows_repeated_by_a_join_come_once(world: World):
    world.add(*(Video(id=number, tags={Tag(name="a"), Tag(name="b")}) for number in (1, 2, 3)))
    got = []
    for video in each_reserved(world.session(), select(Video).join(Video.tags).order_by(Video.id), KEY):
        got.append(video.id)
        video.release(KEY)
    assert got == [1, 2, 3]


def test_statements_do_not_grow_while_rows_are_done_one_by_one(database: World):
    """A list of all rows that were ever yielded would make the thousandth statement a long one."""
    database.add_videos(30)
    session = database.session()
    with statements() as sent:
        for video in each_reserved(session, WAITING, KEY):
            video.path = "/there"
            session.commit()
            video.release(KEY)
    searches = [statement for statement, _ in sent if statement.startswith("INSERT INTO reservations")]
    assert len(searches) > 30
    assert max(map(len, searches)) < 2 * min(map(len, searches))
