"""Rows come in the statement's own order."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, nulls_first, nulls_last, select

from reservable import first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Author, Video
from tests.sqlalchemy.finding.worlds import KEY, World

RANKS = {1: 20, 2: None, 3: 10, 4: 30, 5: 20}


@pytest.fixture
def ranked(world: World) -> World:
    add_ranked(world)
    return world


def add_ranked(world: World) -> None:
    world.add(*(Video(id=number, title="x" * number, rank=rank) for number, rank in RANKS.items()))


ORDERS = {
    "ascending": ((Video.id.asc(),), [1, 2, 3, 4, 5]),
    "descending": ((Video.id.desc(),), [5, 4, 3, 2, 1]),
    "two columns": ((nulls_last(Video.rank.desc()), Video.id), [4, 1, 5, 3, 2]),
    "nulls first": ((nulls_first(Video.rank.asc()), Video.id.desc()), [2, 3, 5, 1, 4]),
    "an expression": ((func.abs(Video.id - 3), Video.id), [3, 2, 4, 1, 5]),
    "a length": ((func.length(Video.title).desc(),), [5, 4, 3, 2, 1]),
}


@pytest.mark.parametrize("order", ORDERS)
def test_rows_come_in_the_order_of_the_statement(ranked: World, order: str):
    clauses, expected = ORDERS[order]
    if "null" in order or order == "two columns":
        clauses = portable(ranked, clauses)
    session = ranked.session()
    statement = select(Video).order_by(*clauses)
    got = []
    while (video := first_reserved(session, statement, KEY)) is not None:
        got.append(video.id)
    assert got == expected


def portable(world: World, clauses: Any) -> Any:
    """MariaDB has no NULLS FIRST, and sorts NULL first when ascending anyway."""
    if world.database != "mariadb":
        return clauses
    return [getattr(clause, "element", clause) if "NULLS" in str(clause) else clause for clause in clauses]


@pytest.mark.parametrize("order", ORDERS)
def test_several_rows_come_in_the_order_of_the_statement(some: World, order: str):
    clauses, expected = ORDERS[order]
    add_ranked(some)
    statement = select(Video).order_by(*clauses)
    assert [video.id for video in take_reserved(some.session(), statement, KEY, limit=4)] == expected[:4]


def test_null_sorts_where_the_database_sorts_it(ranked: World):
    session = ranked.session()
    statement = select(Video).order_by(Video.rank, Video.id)
    as_the_database_says = list(session.scalars(statement).all())
    session.expunge_all()
    assert [video.id for video in take_reserved(session, statement, KEY, limit=5)] == [
        video.id for video in as_the_database_says
    ]


def test_rows_come_in_the_order_of_a_related_column(world: World):
    world.add(
        Video(id=1, author=Author(name="Carol")),
        Video(id=2, author=Author(name="Alice")),
        Video(id=3, author=Author(name="Bob")),
    )
    statement = select(Video).join(Video.author).order_by(Author.name)
    session = world.session()
    assert [first_reserved(session, statement, KEY).id for _ in range(3)] == [2, 3, 1]  # type: ignore[union-attr]


def test_rows_come_in_the_order_of_a_number_of_related_rows(world: World):
    world.add(
        Author(id=1, name="one video", videos=[Video(id=1)]),
        Author(id=2, name="two videos", videos=[Video(id=2), Video(id=3)]),
    )
    other = select(func.count()).select_from(Video).where(Video.author_id == Author.id)
    statement = (
        select(Video).join(Video.author).order_by(other.correlate(Author).scalar_subquery().desc(), Video.id)
    )
    session = world.session()
    assert [first_reserved(session, statement, KEY).id for _ in range(3)] == [2, 3, 1]  # type: ignore[union-attr]


def test_without_an_order_every_row_is_found_once(ranked: World):
    session = ranked.session()
    got = [first_reserved(session, select(Video), KEY) for _ in RANKS]
    assert sorted(video.id for video in got if video is not None) == [1, 2, 3, 4, 5]
    assert first_reserved(session, select(Video), KEY) is None
