"""Statements may join, alias, nest and compare as they like: what counts is the one entity they select."""

from __future__ import annotations

import pytest
from sqlalchemy import exists, func, literal, select, union
from sqlalchemy.orm import aliased, with_loader_criteria

from reservable import first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Author, Comment, Tag, Video
from tests.sqlalchemy.finding.worlds import KEY, World, statements


def fill(world: World) -> World:
    one, two = Tag(id=1, name="one"), Tag(id=2, name="two")
    ann, bob = Author(id=1, name="Ann"), Author(id=2, name="Bob")
    world.add(
        Video(id=1, author=ann, tags={one, two}, comments=[Comment(text="a"), Comment(text="b")]),
        Video(id=2, author=bob, tags={one}, rank=5),
        Video(id=3, original_id=1, rank=4),
        Video(id=4, author=bob, tags={two}, comments=[Comment(text="c")]),
    )
    return world


@pytest.fixture
def full(dialect: World) -> World:
    return fill(dialect)


V = aliased(Video)
BY_ALIAS = aliased(Video, name="other")

STATEMENTS = {
    "a filtering join": (
        select(Video).join(Video.author).where(Author.name == "Bob").order_by(Video.id),
        [2, 4],
    ),
    "a repeating join": (select(Video).join(Video.tags).order_by(Video.id), [1, 2, 4]),
    "two repeating joins": (select(Video).join(Video.tags).join(Video.comments).order_by(Video.id), [1, 4]),
    "a left join": (
        select(Video).outerjoin(Video.author).order_by(func.coalesce(Author.name, "Z").desc(), Video.id),
        [3, 2, 4, 1],
    ),
    "a left join for what is missing": (
        select(Video).outerjoin(Video.comments).where(Comment.id.is_(None)).order_by(Video.id),
        [2, 3],
    ),
    "the other side of an outer join": (
        select(Video)
        .select_from(Author)
        .outerjoin(Author.videos)
        .where(Video.id.is_not(None))
        .order_by(Video.id),
        [1, 2, 4],
    ),
    "a comma join": (
        select(Video).where(Author.id == Video.author_id, Author.name == "Bob").order_by(Video.id),
        [2, 4],
    ),
    "select_from": (
        select(Video).select_from(Author).join(Author.videos).order_by(Author.name, Video.id),
        [1, 2, 4],
    ),
    "a self join": (
        select(Video).join(BY_ALIAS, Video.original_id == BY_ALIAS.id).order_by(Video.id),
        [3],
    ),
    "an alias": (select(V).where(V.rank.is_(None)).order_by(V.id.desc()), [4, 1]),
    "an alias joined to its table": (
        select(V).join(Video, V.original_id == Video.id).order_by(V.id),
        [3],
    ),
    "exists": (select(Video).where(exists().where(Comment.video_id == Video.id)).order_by(Video.id), [1, 4]),
    "any and has": (
        select(Video).where(Video.tags.any(name="two"), Video.author.has(name="Bob")).order_by(Video.id),
        [4],
    ),
    "in a subquery": (
        select(Video).where(Video.id.in_(select(Comment.video_id))).order_by(Video.id),
        [1, 4],
    ),
    "in a union": (
        select(Video)
        .where(Video.id.in_(union(select(Comment.video_id), select(Video.original_id + 2))))
        .order_by(Video.id),
        [1, 3, 4],
    ),
    "criteria on the related": (
        select(Video)
        .join(Video.author)
        .options(with_loader_criteria(Author, Author.name == "Ann"))
        .order_by(Video.id),
        [1],
    ),
    "criteria on the entity": (
        select(Video).options(with_loader_criteria(Video, Video.rank.is_not(None))).order_by(Video.id),
        [2, 3],
    ),
    "filter_by": (select(Video).filter_by(author_id=2).order_by(Video.id), [2, 4]),
}


def cte() -> tuple[object, list[int]]:
    talked = select(Comment.video_id, func.count().label("n")).group_by(Comment.video_id).cte("talked")
    return select(Video).join(talked, talked.c.video_id == Video.id).order_by(talked.c.n.desc()), [1, 4]


def derived() -> tuple[object, list[int]]:
    ranked = aliased(Video, select(Video).where(Video.rank.is_not(None)).subquery())
    return select(ranked).order_by(ranked.rank), [3, 2]


def derived_and_grouped() -> tuple[object, list[int]]:
    grouped = select(Video).join(Video.tags).group_by(Video.id).subquery()
    talked = aliased(Video, grouped)
    return select(talked).order_by(talked.id), [1, 2, 4]


def correlated() -> tuple[object, list[int]]:
    count = select(func.count(Comment.id)).where(Comment.video_id == Video.id).scalar_subquery()
    return select(Video).where(count >= literal(1)).order_by(count.desc()), [1, 4]


@pytest.mark.parametrize("form", STATEMENTS)
def test_every_row_of_a_statement_is_found_once_and_in_order(full: World, form: str):
    statement, expected = STATEMENTS[form]
    session = full.session()
    got = []
    while (video := first_reserved(session, statement, KEY)) is not None:
        got.append(video.id)
    assert got == expected
    assert full.reserved() == sorted(expected)


@pytest.mark.parametrize("form", [cte, derived, derived_and_grouped, correlated])
def test_every_row_of_a_nested_statement_is_found_once_and_in_order(full: World, form: object):
    statement, expected = form()  # type: ignore[operator]
    session = full.session()
    got = []
    while (video := first_reserved(session, statement, KEY)) is not None:
        got.append(video.id)
    assert got == expected


@pytest.mark.parametrize("form", STATEMENTS)
def test_several_rows_of_a_statement_are_taken_once_each(some: World, form: str):
    statement, expected = STATEMENTS[form]
    found = take_reserved(fill(some).session(), statement, KEY, limit=9)
    assert [video.id for video in found] == expected


def test_the_server_is_told_to_lock_the_models_own_table_only(postgresql: World):
    postgresql.add(Video(id=1, author=Author(id=1, name="Ann")))
    statement = select(Video).join(Video.author)
    with statements() as sent:
        assert first_reserved(postgresql.session(), statement, KEY) is not None
    (search,) = [text for text, _ in sent if text.startswith("INSERT")]
    assert "FOR NO KEY UPDATE OF videos SKIP LOCKED" in search
