"""Loading options of the statement hold: what was asked for is there without a further statement."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import inspect, select
from sqlalchemy.orm import contains_eager, immediateload, joinedload, raiseload, selectinload, subqueryload

from reservable import first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Author, Chapter, Comment, Country, Review, Tag, Video
from tests.sqlalchemy.finding.worlds import KEY, World, statements

LOADERS = {
    "joined": joinedload,
    "selectin": selectinload,
    "subquery": subqueryload,
    "immediate": immediateload,
}
ALL = select(Video).where(Video.path.is_(None)).order_by(Video.id)


@pytest.fixture(params=LOADERS)
def loader(request: pytest.FixtureRequest) -> Any:
    return LOADERS[request.param]


@pytest.fixture
def full(apart: World) -> World:
    """Two videos with all there may be, and one with nothing."""
    country = Country(id=1, name="here")
    author = Author(id=1, name="author", country=country)
    one, two = Tag(id=1, name="one"), Tag(id=2, name="two")
    original = Video(
        id=1,
        author=author,
        tags={one, two},
        comments=[Comment(id=1, text="a"), Comment(id=2, text="b")],
        chapters={"start": Chapter(name="start"), "end": Chapter(name="end")},
    )
    apart.add(original, Video(id=2, original=original, tags={one}, author=author), Video(id=3))
    return apart


def reserve(world: World, statement: Any) -> tuple[list[Any], Any]:
    session = world.session()
    found = take_reserved(session, statement, KEY, limit=3)
    assert [video.id for video in found] == [1, 2, 3]
    return found, statements()


def test_collections_of_every_kind_are_loaded(full: World, loader: Any):
    options = [loader(Video.tags), loader(Video.comments), loader(Video.chapters), loader(Video.copies)]
    (first, second, third), sent = reserve(full, ALL.options(*options))
    with sent as after:
        assert {tag.name for tag in first.tags} == {"one", "two"}
        assert [comment.text for comment in first.comments] == ["a", "b"]
        assert sorted(first.chapters) == ["end", "start"]
        assert first.chapters["end"].name == "end"
        assert first.copies == [second]
        assert third.tags == set()
        assert third.chapters == {}
    assert after == []
    assert second.tags <= first.tags


def test_relations_that_may_be_missing_are_loaded(full: World, loader: Any):
    (first, second, third), sent = reserve(full, ALL.options(loader(Video.author), loader(Video.original)))
    with sent as after:
        assert first.author is second.author
        assert first.author is not None
        assert second.original is first
        assert third.author is None
        assert third.original is None
    assert after == []


def test_chains_of_relations_are_loaded(full: World, loader: Any):
    options = loader(Video.author).options(loader(Author.country))
    (first, _, _), sent = reserve(full, ALL.options(options))
    with sent as after:
        assert first.author is not None
        assert first.author.country is not None
        assert first.author.country.name == "here"
    assert after == []


def test_a_chain_is_loaded_onto_a_related_object_that_the_session_has_already(full: World, loader: Any):
    session = full.session()
    author = session.get_one(Author, 1)
    statement = ALL.options(loader(Video.author).options(loader(Author.country)))
    found = first_reserved(session, statement, KEY)
    assert found is not None
    with statements() as after:
        assert found.author is author
        assert author.country is not None
        assert author.country.name == "here"
    assert after == []


def test_related_objects_of_the_session_are_reused_with_their_changes(full: World, loader: Any):
    session = full.session()
    author = session.get_one(Author, 1)
    tag = session.get_one(Tag, 1)
    author.name = "changed and not flushed"
    found = first_reserved(session, ALL.options(loader(Video.author), loader(Video.tags)), KEY)
    assert found is not None
    assert found.author is author
    assert tag in found.tags
    assert author.name == "changed and not flushed"
    session.commit()
    assert full.session().get_one(Author, 1).name == "changed and not flushed"


def test_a_known_object_gets_what_is_eagerly_loaded(full: World, loader: Any):
    session = full.session()
    known = session.get_one(Video, 1)
    found = first_reserved(session, ALL.options(loader(Video.tags), loader(Video.author)), KEY)
    assert found is known
    with statements() as after:
        assert len(known.tags) == 2
        assert known.author is not None
    assert after == []


def test_an_expired_related_object_is_filled(full: World, loader: Any):
    session = full.session()
    author = session.get_one(Author, 1)
    session.expire(author)
    found = first_reserved(session, ALL.options(loader(Video.author)), KEY)
    assert found is not None
    with statements() as after:
        assert found.author is author
        assert author.name == "author"
    assert after == []


def test_contains_eager_takes_what_the_join_has_filtered(full: World):
    statement = (
        select(Video)
        .join(Video.tags)
        .where(Tag.name == "two")
        .options(contains_eager(Video.tags))
        .order_by(Video.id)
    )
    found = first_reserved(full.session(), statement, KEY)
    assert found is not None
    assert {tag.name for tag in found.tags} == {"two"}


def test_contains_eager_over_an_outer_join_to_a_missing_row(full: World):
    statement = (
        select(Video).outerjoin(Video.author).options(contains_eager(Video.author)).order_by(Video.id.desc())
    )
    session = full.session()
    found = [first_reserved(session, statement, KEY) for _ in range(3)]
    assert [video.author.name if video and video.author else None for video in found] == [
        None,
        "author",
        "author",
    ]


def test_a_relation_joined_by_the_mapping_is_loaded(apart: World):
    apart.add(Author(id=1, name="a"), Review(id=1, text="x", author_id=1), Review(id=2, text="y"))
    session = apart.session()
    statement = select(Review).order_by(Review.id)
    found = take_reserved(session, statement, KEY, limit=2)
    with statements() as after:
        assert [review.author.name if review.author else None for review in found] == ["a", None]
    assert after == []


def test_a_relation_joined_by_the_mapping_can_be_ordered_by_and_made_distinct(apart: World):
    apart.add(Author(id=1, name="a"), Review(id=1, text="x"), Review(id=2, text="y", author_id=1))
    session = apart.session()
    statement = select(Review).join(Review.author).order_by(Author.name)
    assert first_reserved(session, statement, KEY).id == 2  # type: ignore[union-attr]
    assert first_reserved(session, select(Review).distinct(), KEY).id == 1  # type: ignore[union-attr]


def test_options_that_forbid_loading_hold(full: World):
    found = first_reserved(full.session(), ALL.options(raiseload(Video.author)), KEY)
    assert found is not None
    with pytest.raises(Exception, match="raise"):
        _ = found.author


def test_without_options_relations_are_loaded_when_they_are_read(full: World):
    found = first_reserved(full.session(), ALL, KEY)
    assert found is not None
    assert {"author", "tags"} <= inspect(found).unloaded
    assert found.author is not None
    assert len(found.tags) == 2


def test_a_collection_loaded_before_is_kept_complete(full: World):
    """An object that is both found and related to another that is found is one object."""
    statement = ALL.options(selectinload(Video.copies).selectinload(Video.tags))
    session = full.session()
    found = take_reserved(session, statement, KEY, limit=2)
    assert found[0].copies == [found[1]]
    assert len(list(session.identity_map.values())) == 3


def test_in_memory_everything_is_loaded_as_well(memory: World, loader: Any):
    memory.add(Video(id=1, author=Author(id=1, name="a"), tags={Tag(id=1, name="one")}))
    session = memory.session()
    found = first_reserved(session, ALL.options(loader(Video.author), loader(Video.tags)), KEY)
    assert found is not None
    with statements() as after:
        assert found.author is not None
        assert len(found.tags) == 1
    assert after == []
