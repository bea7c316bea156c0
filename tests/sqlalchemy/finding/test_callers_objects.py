"""An object that the session has already is the one returned, up to date where the caller has not changed it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import inspect, select
from sqlalchemy.orm import Session, make_transient, selectinload, undefer

from reservable import first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Author, Comment, Size, Tag, Video
from tests.sqlalchemy.finding.worlds import KEY, World, statements

WAITING = select(Video).where(Video.path.is_(None)).order_by(Video.id)


def stored(world: World, column: str, one: int = 1) -> Any:
    with world.engine.connect() as connection:
        return connection.exec_driver_sql(f"SELECT {column} FROM videos WHERE id = {one}").scalar()


def loaded(world: World, **values: Any) -> tuple[Session, Video]:
    """A session that has read the only video, and committed its read so that others can write."""
    world.add(Video(id=1, title="old", rank=1, width=1, height=2, meta={"a": 1}, **values))
    session = world.session(expire_on_commit=False)
    video = session.get_one(Video, 1)
    session.commit()
    return session, video


def test_the_object_in_the_session_is_the_one_returned(some: World):
    session, video = loaded(some)
    assert first_reserved(session, WAITING, KEY) is video


def test_an_unchanged_object_is_brought_up_to_date(some: World):
    session, video = loaded(some)
    some.run("UPDATE videos SET title = 'new', rank = 2, width = 3, height = 4 WHERE id = 1")
    assert first_reserved(session, WAITING, KEY) is video
    assert (video.title, video.rank, video.size, video.shout) == ("new", 2, Size(3, 4), "NEW")
    assert not session.dirty


def test_what_the_caller_has_changed_stays_as_the_caller_set_it(some: World):
    session, video = loaded(some)
    video.title = "mine"
    some.run("UPDATE videos SET title = 'new', rank = 2 WHERE id = 1")
    assert first_reserved(session, WAITING, KEY) is video
    assert (video.title, video.rank) == ("mine", 2)
    assert video in session.dirty


def test_what_the_caller_has_changed_is_stored_later_and_nothing_else(apart: World):
    session, video = loaded(apart)
    video.title = "mine"
    apart.run("UPDATE videos SET title = 'new', rank = 2 WHERE id = 1")
    first_reserved(session, WAITING, KEY)
    with statements() as sent:
        session.commit()
    updates = [" ".join(statement.split()) for statement, _ in sent if statement.startswith("UPDATE")]
    assert len(updates) == 1
    assert updates[0].startswith("UPDATE videos SET title=")
    assert "rank" not in updates[0]
    assert (stored(apart, "title"), stored(apart, "videos.rank")) == ("mine", 2)


def test_a_value_set_without_being_read_first_stays(some: World):
    some.add(Video(id=1, title="old", rank=1))
    session = some.session()
    video = session.get_one(Video, 1)
    session.commit()  # expired
    video.title = "mine"
    some.run("UPDATE videos SET rank = 2 WHERE id = 1")
    assert first_reserved(session, WAITING, KEY) is video
    assert (video.title, video.rank) == ("mine", 2)
    session.commit()
    assert stored(some, "title") == "mine"


def test_an_expired_object_is_filled_without_a_further_statement(some: World):
    some.add(Video(id=1, title="old"))
    session = some.session()
    video = session.get_one(Video, 1)
    session.commit()
    assert "title" in inspect(video).unloaded
    assert first_reserved(session, WAITING, KEY) is video
    with statements() as sent:
        assert video.title == "old"
    assert sent == []


def test_a_detached_copy_is_left_alone_and_another_object_is_returned(some: World):
    session, video = loaded(some)
    session.expunge(video)
    found = first_reserved(session, WAITING, KEY)
    assert found is not video
    assert video not in session


def test_a_dirty_json_value_stays(some: World):
    session, video = loaded(some)
    assert video.meta is not None
    video.meta["mine"] = True
    assert first_reserved(session, WAITING, KEY) is video
    assert video.meta == {"a": 1, "mine": True}
    session.commit()
    assert some.session().get_one(Video, 1).meta == {"a": 1, "mine": True}


@pytest.mark.parametrize("known", [True, False], ids=["known object", "new object"])
def test_a_change_inside_a_json_value_is_noticed_after_the_find(some: World, known: bool):
    session, video = loaded(some)
    if not known:
        session.expunge(video)
    found = first_reserved(session, WAITING, KEY)
    assert found is not None
    assert found.meta is not None
    found.meta["later"] = True
    assert found in session.dirty
    session.commit()
    assert some.session().get_one(Video, 1).meta == {"a": 1, "later": True}


@pytest.mark.parametrize("known", [True, False], ids=["known object", "new object"])
def test_a_composite_can_be_replaced_after_the_find(some: World, known: bool):
    session, video = loaded(some)
    if not known:
        session.expunge(video)
    assert video.size == Size(1, 2)
    some.run("UPDATE videos SET width = 5 WHERE id = 1")
    found = first_reserved(session, WAITING, KEY)
    assert found is not None
    assert found.size == Size(5, 2)
    found.size = Size(8, 9)
    session.commit()
    assert (stored(some, "width"), stored(some, "height")) == (8, 9)


def test_a_composite_that_the_caller_has_replaced_stays(some: World):
    session, video = loaded(some)
    video.size = Size(8, 9)
    some.run("UPDATE videos SET width = 5, title = 'new' WHERE id = 1")
    assert first_reserved(session, WAITING, KEY) is video
    assert (video.size, video.title) == (Size(8, 9), "new")
    session.commit()
    assert stored(some, "width") == 8


def test_a_relation_that_the_caller_has_changed_stays(some: World):
    some.add(Author(id=1, name="old"), Author(id=2, name="mine"), Video(id=1, author_id=1))
    session = some.session()
    video = session.get_one(Video, 1)
    video.author = session.get_one(Author, 2)
    statement = WAITING.options(selectinload(Video.author))
    assert first_reserved(session, statement, KEY) is video
    assert video.author.id == 2
    session.commit()
    assert stored(some, "author_id") == 2


def test_a_collection_that_the_caller_has_changed_stays(some: World):
    some.add(Video(id=1, tags={Tag(id=1, name="one")}), Tag(id=2, name="two"))
    session = some.session()
    video = session.get_one(Video, 1)
    video.tags.add(session.get_one(Tag, 2))
    statement = WAITING.options(selectinload(Video.tags))
    assert first_reserved(session, statement, KEY) is video
    assert {tag.id for tag in video.tags} == {1, 2}
    session.commit()
    assert {tag.id for tag in some.session().get_one(Video, 1).tags} == {1, 2}


def test_what_waits_to_be_put_into_an_unloaded_collection_is_put_in(some: World):
    some.add(Video(id=1, comments=[Comment(id=1, text="stored")]))
    session = some.session()
    video = session.get_one(Video, 1)
    with session.no_autoflush:
        session.add(Comment(id=2, text="pending", video=video))
        statement = WAITING.options(selectinload(Video.comments))
        assert first_reserved(session, statement, KEY) is video
        assert [comment.text for comment in video.comments] == ["stored", "pending"]
    session.commit()
    assert len(some.session().get_one(Video, 1).comments) == 2


def test_a_deferred_column_that_was_loaded_keeps_the_callers_change(some: World):
    session, video = loaded(some, notes="old")
    video.notes = "mine"
    some.run("UPDATE videos SET notes = 'new' WHERE id = 1")
    assert first_reserved(session, WAITING.options(undefer(Video.notes)), KEY) is video
    assert video.notes == "mine"


def test_several_known_and_unknown_objects_come_together(some: World):
    some.add_videos(4)
    session = some.session()
    known = session.get_one(Video, 3)
    found = take_reserved(session, WAITING, KEY, limit=4)
    assert [video.id for video in found] == [1, 2, 3, 4]
    assert found[2] is known


def test_an_object_made_transient_by_the_caller_is_not_touched(some: World):
    session, video = loaded(some)
    session.expunge(video)
    make_transient(video)
    video.title = "a new one"
    found = first_reserved(session, WAITING, KEY)
    assert found is not None
    assert found is not video
    assert (found.title, video.title) == ("old", "a new one")
