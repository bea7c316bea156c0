"""Finding never gives up while a free matching row is left, and never loads the whole table for it."""

from __future__ import annotations

import pytest
from sqlalchemy import inspect, select, text

from reservable import configure, first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Comment, Video
from tests.sqlalchemy.finding.worlds import KEY, REREAD, World, before_statement, statements

IN_ORDER = select(Video).where(Video.path.is_(None)).order_by(Video.id)


@pytest.mark.parametrize("ahead", [1, 99, 100, 101, 250])
def test_rows_reserved_ahead_in_the_order_are_passed_over(world: World, ahead: int):
    world.add_videos(ahead + 3)
    world.reserve_many(range(1, ahead + 1))
    found = first_reserved(world.session(), IN_ORDER, KEY)
    assert found is not None
    assert found.id == ahead + 1


def test_none_is_the_answer_only_when_every_row_is_reserved(world: World):
    world.add_videos(120)
    world.reserve_many(range(1, 121))
    assert first_reserved(world.session(), IN_ORDER, KEY) is None
    assert first_reserved(world.session(), IN_ORDER, "another purpose") is not None


def test_none_is_the_answer_when_nothing_matches(world: World):
    world.add_videos(3, path="/there")
    assert first_reserved(world.session(), IN_ORDER, KEY) is None
    assert world.reserved() == []


def test_a_row_given_back_in_front_is_found_again(world: World):
    world.add_videos(5)
    session = world.session()
    first = first_reserved(session, IN_ORDER, KEY)
    second = first_reserved(session, IN_ORDER, KEY)
    assert first is not None
    assert second is not None
    assert first.release(KEY)
    again = first_reserved(session, IN_ORDER, KEY)
    assert again is first


def test_rows_repeated_by_a_join_do_not_hide_those_behind_them(world: World):
    world.add_videos(40)
    world.add(*(Comment(text="x", video_id=number % 40 + 1) for number in range(480)))
    statement = select(Video).join(Video.comments).order_by(Video.id)
    session = world.session()
    taken = [first_reserved(session, statement, KEY) for _ in range(40)]
    assert [video.id for video in taken if video is not None] == list(range(1, 41))
    assert first_reserved(session, statement, KEY) is None


def test_a_row_repeated_over_a_whole_batch_does_not_end_the_search(world: World):
    world.add_videos(2)
    world.add(*(Comment(text="x", video_id=1) for _ in range(250)), Comment(text="x", video_id=2))
    world.reserve(1)
    found = first_reserved(world.session(), select(Video).join(Video.comments).order_by(Video.id), KEY)
    assert found is not None
    assert found.id == 2


def test_a_row_locked_by_an_unrelated_transaction_is_still_found(server: World):
    server.add_videos(1)
    other = server.connect()
    other.execute(text("SELECT id FROM videos WHERE id = 1 FOR UPDATE"))
    found = first_reserved(server.session(), IN_ORDER, KEY)
    assert found is not None
    assert found.id == 1


def test_a_row_changed_by_an_open_transaction_is_still_found_as_it_is_committed(server: World):
    server.add_videos(1)
    other = server.connect()
    other.execute(text("UPDATE videos SET title = 'not yet' WHERE id = 1"))
    found = first_reserved(server.session(), IN_ORDER, KEY)
    assert found is not None
    assert found.title == "video 1"


def test_a_locked_row_in_the_middle_does_not_hide_the_rows_around_it(server: World):
    server.add_videos(5)
    other = server.connect()
    other.execute(text("SELECT id FROM videos WHERE id IN (1, 3) FOR UPDATE"))
    session = server.session()
    got = [first_reserved(session, IN_ORDER, KEY) for _ in range(5)]
    assert sorted(video.id for video in got if video is not None) == [1, 2, 3, 4, 5]


def test_a_locked_row_is_found_in_an_order_without_an_index(server: World):
    server.add(*(Video(id=number, rank=-number) for number in range(1, 6)))
    other = server.connect()
    other.execute(text("SELECT id FROM videos WHERE id = 5 FOR UPDATE"))
    session = server.session()
    statement = select(Video).order_by(Video.rank)
    got = [first_reserved(session, statement, KEY) for _ in range(5)]
    assert sorted(video.id for video in got if video is not None) == [1, 2, 3, 4, 5]


def test_rows_that_others_hold_locked_while_they_reserve_do_not_give_none(server: World):
    """Another worker's transaction on every row: what SKIP LOCKED alone would call an empty table."""
    server.add_videos(3)
    other = server.connect()
    other.execute(text("SELECT id FROM videos FOR UPDATE"))
    assert len(take_reserved(server.session(), IN_ORDER, KEY, limit=5)) == 3


def test_a_row_given_up_between_look_and_grant_is_not_missed(shared: World):
    """The only row is reserved when the search begins, and free before it ends."""
    shared.add_videos(2)
    session = shared.session()
    with before_statement(REREAD, lambda: shared.run("UPDATE videos SET path = '/x' WHERE id = 1")):
        found = first_reserved(session, IN_ORDER, KEY)
    assert found is not None
    assert found.id == 2
    assert shared.reserved() == [2]


@pytest.mark.parametrize("count", [2_000])
def test_one_row_of_many_is_found_by_reading_few(server: World, count: int):
    server.add_videos(count)
    session = server.session()
    first_reserved(session, IN_ORDER, KEY)  # everything is prepared now
    with statements() as sent:
        assert first_reserved(session, IN_ORDER, KEY) is not None
    assert sum(max(0, rows) for _, rows in sent) <= 105
    assert len(sent) <= 4


def test_rows_reserved_ahead_cost_a_bounded_reading(server: World):
    server.add_videos(3_000)
    server.reserve_many(range(1, 151))
    session = server.session()
    with statements() as sent:
        assert first_reserved(session, IN_ORDER, KEY) is not None
    assert sum(max(0, rows) for _, rows in sent) <= 10 * 150 + 105


def test_only_the_found_row_becomes_an_object(world: World):
    world.add_videos(300)
    session = world.session()
    found = first_reserved(session, IN_ORDER, KEY)
    assert list(session.identity_map.values()) == [found]


def test_every_search_asks_for_a_bounded_number_of_rows(world: World):
    world.add_videos(300)
    with statements() as sent:
        first_reserved(world.session(), IN_ORDER, KEY)
    searches = [statement for statement, _ in sent if "FROM videos" in statement and "title" not in statement]
    assert searches
    assert all("LIMIT" in statement for statement in searches)


def test_the_reservation_is_for_the_purpose_alone(world: World):
    world.add_videos(2)
    session = world.session()
    assert first_reserved(session, IN_ORDER, "download").id == 1  # type: ignore[union-attr]
    assert first_reserved(session, IN_ORDER, "transcode").id == 1  # type: ignore[union-attr]
    assert first_reserved(session, IN_ORDER, "download").id == 2  # type: ignore[union-attr]


def test_the_prefix_keeps_two_applications_apart(database: World):
    database.add_videos(1)
    configure(prefix="one:")
    try:
        assert first_reserved(database.session(), IN_ORDER, KEY) is not None
        assert first_reserved(database.session(), IN_ORDER, KEY) is None
        configure(prefix="two:")
        assert first_reserved(database.session(), IN_ORDER, KEY) is not None
    finally:
        configure()


def test_release_gives_back_exactly_the_grant_that_was_found(world: World):
    world.add_videos(1)
    session = world.session()
    found = first_reserved(session, IN_ORDER, KEY, "1 hour")
    assert found is not None
    handle = found.reservation(KEY)
    assert handle.held
    assert 3500 < handle.remaining <= 3600
    assert inspect(found).identity == (1,)
    assert handle.holder().fence == handle.fence  # type: ignore[union-attr]
    assert found.release(KEY)
    assert not found.is_reserved(KEY)
    assert not found.release(KEY)


def test_a_grant_that_was_taken_over_is_not_released_by_its_first_finder(world: World):
    world.add_videos(1)
    found = first_reserved(world.session(), IN_ORDER, KEY, "1 hour")
    assert found is not None
    other = world.session().get_one(Video, 1)
    assert other.release(KEY)  # an operator
    assert other.reserve(KEY, "1 hour")
    assert not found.release(KEY)
    assert other.is_reserved(KEY)
