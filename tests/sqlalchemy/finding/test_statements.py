"""LIMIT and OFFSET bound the candidates, DISTINCT works, and what has no rows of one table is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, insert, select, text, tuple_, union
from sqlalchemy.dialects.postgresql import distinct_on

from reservable import (
    InvalidDuration,
    InvalidKey,
    NotSupported,
    each_reserved,
    first_reserved,
    take_reserved,
)
from tests.sqlalchemy.finding.models import Author, Comment, Tag, Video
from tests.sqlalchemy.finding.worlds import KEY, REREAD, World, before_statement

ALL = select(Video).order_by(Video.id)


def ids(videos: Any) -> list[int]:
    return [video.id for video in videos]


def test_limit_bounds_the_candidates(world: World):
    world.add_videos(5)
    session = world.session()
    assert ids(take_reserved(session, ALL.limit(2), KEY, limit=5)) == [1, 2]
    assert first_reserved(session, ALL.limit(2), KEY) is None
    assert first_reserved(session, ALL.limit(3), KEY).id == 3  # type: ignore[union-attr]


def test_offset_bounds_the_candidates(world: World):
    world.add_videos(4)
    session = world.session()
    statement = ALL.limit(10).offset(2)
    assert ids(take_reserved(session, statement, KEY, limit=5)) == [3, 4]
    assert first_reserved(session, statement, KEY) is None


def test_a_slice_counts_rows_and_not_free_rows(world: World):
    world.add_videos(4)
    world.reserve(2)
    assert ids(each_reserved(world.session(), ALL.slice(1, 3), KEY)) == [3]


def test_a_limit_beyond_a_batch_is_looked_through_to_its_end(world: World):
    world.add_videos(130)
    world.reserve_many(range(1, 120))
    assert first_reserved(world.session(), ALL.limit(125), KEY).id == 120  # type: ignore[union-attr]


def test_a_bounded_statement_is_checked_again_as_well(shared: World):
    shared.add_videos(3)
    statement = ALL.where(Video.path.is_(None)).limit(3)
    with before_statement(REREAD, lambda: shared.run("UPDATE videos SET path = '/x' WHERE id = 1")):
        assert first_reserved(shared.session(), statement, KEY).id == 2  # type: ignore[union-attr]
    assert shared.reserved() == [2]


def test_distinct_rows_of_a_repeating_join_are_found_once(world: World):
    world.add(
        Video(id=1, tags={Tag(id=1, name="a"), Tag(id=2, name="b")}),
        Video(id=2, comments=[Comment(text="x"), Comment(text="y")]),
    )
    session = world.session()
    statement = select(Video).outerjoin(Video.tags).distinct().order_by(Video.id)
    assert ids(take_reserved(session, statement, KEY, limit=5)) == [1, 2]
    assert first_reserved(session, statement, KEY) is None


def test_distinct_with_an_order_by_columns_of_the_row(world: World):
    world.add(Video(id=1, rank=3), Video(id=2, rank=1), Video(id=3, rank=2))
    statement = select(Video).distinct().order_by(Video.rank.desc())
    assert ids(take_reserved(world.session(), statement, KEY, limit=5)) == [1, 3, 2]


def test_distinct_and_limit_together(world: World):
    world.add(*(Video(id=number, tags={Tag(name="a"), Tag(name="b")}) for number in (1, 2, 3)))
    statement = select(Video).join(Video.tags).distinct().order_by(Video.id).limit(2)
    assert ids(take_reserved(world.session(), statement, KEY, limit=5)) == [1, 2]


def test_distinct_on_takes_the_first_of_each_group(postgresql: World):
    postgresql.add(Author(id=1, name="a"), Author(id=2, name="b"))
    postgresql.add(Video(id=1, author_id=1), Video(id=2, author_id=1), Video(id=3, author_id=2))
    statement = select(Video).ext(distinct_on(Video.author_id)).order_by(Video.author_id, Video.id)
    assert ids(take_reserved(postgresql.session(), statement, KEY, limit=5)) == [1, 3]


REFUSED: dict[str, Any] = {
    "GROUP BY": select(Video).group_by(Video.id),
    "HAVING": select(Video).having(func.count() > 1),
    "FOR UPDATE": select(Video).with_for_update(),
    "aggregates": select(func.count(Video.id)),
    "several entities": select(Video, Author),
    "bare columns": select(Video.id),
    "bare columns ": select(Video, Video.title),
    "TextClause": text("SELECT * FROM videos"),
    "FromStatement": select(Video).from_statement(text("SELECT * FROM videos")),
    "CompoundSelect": union(select(Video), select(Video)),
    "Insert": insert(Video),
    "str": "SELECT * FROM videos",
    "one mapped entity": select(Video.__table__),
    "one mapped  entity": select(tuple_(Video.id, Video.title)),
    "DeclarativeAttributeIntercept": Video,
    "not Reservable": select(Author),
}


@pytest.mark.parametrize("clause", REFUSED)
def test_statements_whose_rows_cannot_be_reserved_are_refused_by_their_clause(memory: World, clause: str):
    memory.add_videos(1)
    named = " ".join(clause.split())
    for find in (
        lambda session: first_reserved(session, REFUSED[clause], KEY),
        lambda session: take_reserved(session, REFUSED[clause], KEY, limit=1),
        lambda session: each_reserved(session, REFUSED[clause], KEY),
    ):
        with pytest.raises(NotSupported, match=named):
            find(memory.session())
    assert memory.reserved() == []


@pytest.mark.parametrize("limit", [0, -1, None, True, 1.0, "1"])
def test_a_limit_that_is_no_number_of_rows_is_refused(memory: World, limit: Any):
    memory.add_videos(1)
    with pytest.raises(ValueError, match="limit"):
        take_reserved(memory.session(), ALL, KEY, limit=limit)
    assert memory.reserved() == []


def test_bad_durations_and_keys_are_refused_before_anything_is_asked(world: World):
    world.add_videos(1)
    session = world.session()
    for duration in (0, -1, None, True, "soon", float("nan")):
        with pytest.raises(InvalidDuration):
            first_reserved(session, ALL, KEY, duration)
    keys: list[Any] = [None, "", 1.5, [], lambda: None]
    for key in keys:
        with pytest.raises(InvalidKey):
            each_reserved(session, ALL, key)
    assert world.reserved() == []


def test_distinct_on_offers_nobody_the_second_of_a_group(postgresql: World):
    postgresql.add(Author(id=1, name="a"))
    postgresql.add(Video(id=1, author_id=1), Video(id=2, author_id=1))
    postgresql.reserve(1)
    statement = select(Video).ext(distinct_on(Video.author_id)).order_by(Video.author_id, Video.id)
    assert first_reserved(postgresql.session(), statement, KEY) is None
