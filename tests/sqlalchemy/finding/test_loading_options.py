"""Columns come as the statement wants them: deferred, alone, computed, combined."""

from __future__ import annotations

import pytest
from sqlalchemy import bindparam, func, inspect, literal, select
from sqlalchemy.orm import Bundle, Session, defer, load_only, undefer, with_expression

from reservable import first_reserved
from tests.sqlalchemy.finding.models import Size, Video
from tests.sqlalchemy.finding.worlds import KEY, World, statements

ALL = select(Video).order_by(Video.id)


@pytest.fixture(params=["known", "new"])
def case(request: pytest.FixtureRequest, apart: World) -> tuple[World, Video | None, Session]:
    """A row, with or without an object for it in the session."""
    apart.add(Video(id=1, title="title", notes="long", rank=3, width=1, height=2))
    session = apart.session()
    known = session.get_one(Video, 1) if request.param == "known" else None
    session.commit()
    return apart, known, session


def test_a_deferred_column_is_loaded_when_it_is_read(apart: World):
    apart.add(Video(id=1, notes="long"))
    found = first_reserved(apart.session(), ALL, KEY)
    assert found is not None
    assert "notes" in inspect(found).unloaded
    assert found.notes == "long"


def test_undefer_loads_it_at_once(case: tuple[World, Video | None, Session]):
    _, known, session = case
    found = first_reserved(session, ALL.options(undefer(Video.notes)), KEY)
    assert found is not None
    assert known is None or found is known
    with statements() as after:
        assert found.notes == "long"
    assert after == []


def test_load_only_loads_nothing_else(apart: World):
    apart.add(Video(id=1, title="title", rank=3))
    found = first_reserved(apart.session(), ALL.options(load_only(Video.title)), KEY)
    assert found is not None
    assert "rank" in inspect(found).unloaded
    assert (found.title, found.rank) == ("title", 3)
    assert found.release(KEY)


def test_defer_leaves_a_column_out(apart: World):
    apart.add(Video(id=1, title="title"))
    found = first_reserved(apart.session(), ALL.options(defer(Video.title)), KEY)
    assert found is not None
    assert "title" in inspect(found).unloaded
    assert found.title == "title"


def test_an_expression_given_with_the_statement_is_there(case: tuple[World, Video | None, Session]):
    _, known, session = case
    statement = ALL.options(with_expression(Video.score, Video.rank * literal(10)))
    found = first_reserved(session, statement, KEY)
    assert found is not None
    assert known is None or found is known
    assert found.score == 30


def test_a_computed_column_and_a_composite_are_there(apart: World):
    apart.add(Video(id=1, title="title", width=3, height=4))
    found = first_reserved(apart.session(), ALL, KEY)
    assert found is not None
    with statements() as after:
        assert (found.shout, found.size) == ("TITLE", Size(3, 4))
    assert after == []


def test_computed_columns_composites_and_hybrids_can_be_filtered_and_sorted_by(world: World):
    world.add(
        Video(id=1, title="a", width=1, height=1, path="/x"),
        Video(id=2, title="b", width=1, height=1),
        Video(id=3, title="b", width=2, height=2),
        Video(id=4, title="b", width=1, height=1),
    )
    statement = (
        select(Video)
        .where(Video.waiting, Video.shout == "B", Video.size == Size(1, 1))
        .order_by(Video.shout, Video.id.desc())
    )
    session = world.session()
    assert first_reserved(session, statement, KEY).id == 4  # type: ignore[union-attr]
    assert first_reserved(session, statement, KEY).id == 2  # type: ignore[union-attr]
    assert first_reserved(session, statement, KEY) is None


def test_execution_options_for_big_results_do_no_harm(world: World):
    world.add_videos(3)
    for options in ({"yield_per": 2}, {"populate_existing": True}, {"stream_results": True}):
        assert first_reserved(world.session(), ALL.execution_options(**options), KEY) is not None


def test_parameters_bound_to_the_statement_hold(world: World):
    world.add_videos(3)
    statement = select(Video).where(Video.id >= bindparam("least")).order_by(Video.id).params(least=2)
    assert first_reserved(world.session(), statement, KEY).id == 2  # type: ignore[union-attr]


def test_a_bundle_is_refused(world: World):
    with pytest.raises(TypeError, match="bare columns"):
        first_reserved(world.session(), select(Bundle("b", Video.id, func.now())), KEY)
