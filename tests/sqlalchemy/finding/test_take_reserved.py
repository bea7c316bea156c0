"""`take_reserved`: up to so many rows, each with a grant of its own."""

from __future__ import annotations

from sqlalchemy import select

from reservable import take_reserved
from tests.sqlalchemy.finding.models import Tag, Video
from tests.sqlalchemy.finding.worlds import KEY, World, statements

ALL = select(Video).order_by(Video.id)


def test_as_many_rows_are_taken_as_are_asked_for(world: World):
    world.add_videos(5)
    found = take_reserved(world.session(), ALL, KEY, limit=3)
    assert [video.id for video in found] == [1, 2, 3]
    assert world.reserved() == [1, 2, 3]


def test_fewer_only_when_no_more_are_free(world: World):
    world.add_videos(5)
    world.reserve(2, 4)
    session = world.session()
    assert [video.id for video in take_reserved(session, ALL, KEY, limit=10)] == [1, 3, 5]
    assert take_reserved(session, ALL, KEY, limit=10) == []


def test_more_rows_than_a_batch_are_taken(world: World):
    world.add_videos(260)
    world.reserve(7)
    found = take_reserved(world.session(), ALL, KEY, limit=240)
    assert [video.id for video in found] == [number for number in range(1, 242) if number != 7]


def test_each_row_has_a_grant_of_its_own(world: World):
    world.add_videos(3)
    found = take_reserved(world.session(), ALL, KEY, "1 hour", limit=3)
    tokens = {video.reservation(KEY).token for video in found}
    assert len(tokens) == 3
    assert None not in tokens
    assert found[1].release(KEY)
    assert world.reserved() == [1, 3]
    assert not found[1].release(KEY)


def test_rows_repeated_by_a_join_are_taken_once(world: World):
    world.add(*(Video(id=number, tags={Tag(name="a"), Tag(name="b"), Tag(name="c")}) for number in (1, 2, 3)))
    statement = select(Video).join(Video.tags).order_by(Video.id)
    found = take_reserved(world.session(), statement, KEY, limit=2)
    assert [video.id for video in found] == [1, 2]
    assert world.reserved() == [1, 2]


def test_the_order_holds_over_rows_that_were_passed_over(world: World):
    world.add(*(Video(id=number, rank=number % 5) for number in range(1, 21)))
    world.reserve(5, 10, 11)
    statement = select(Video).order_by(Video.rank.desc(), Video.id.desc())
    found = take_reserved(world.session(), statement, KEY, limit=20)
    keys = [(video.rank or 0, video.id) for video in found]
    assert keys == sorted(keys, reverse=True)
    assert len(keys) == 17


def test_several_rows_beside_cost_as_many_statements_as_one(database: World):
    database.add_videos(50)
    session = database.session()
    take_reserved(session, ALL, KEY, limit=1)
    with statements() as sent:
        assert len(take_reserved(session, ALL, KEY, limit=40)) == 40
    assert len(sent) == 2


def test_a_limit_far_beyond_the_rows_is_no_matter(world: World):
    world.add_videos(3)
    assert len(take_reserved(world.session(), ALL, KEY, limit=10**9)) == 3
