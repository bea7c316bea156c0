"""What a session adds to all its statements (tenants, soft deletion) holds for finding as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event, select
from sqlalchemy.orm import ORMExecuteState, Session, selectinload, sessionmaker, with_loader_criteria

from reservable import each_reserved, first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Comment, Video
from tests.sqlalchemy.finding.worlds import KEY, World, statements

ALL = select(Video).order_by(Video.id)


def only_ranked(state: ORMExecuteState) -> None:
    if state.is_select:
        state.statement = state.statement.options(
            with_loader_criteria(Video, Video.rank.is_not(None)),
            with_loader_criteria(Comment, Comment.text != "hidden"),
        )


def by_sessionmaker(world: World) -> Session:
    maker = sessionmaker(world.engine)
    event.listen(maker, "do_orm_execute", only_ranked)
    return maker()


def by_class(world: World) -> Session:
    class Ranked(Session):
        pass

    event.listen(Ranked, "do_orm_execute", only_ranked)
    return Ranked(world.engine)


def by_instance(world: World) -> Session:
    session = Session(world.engine)
    event.listen(session, "do_orm_execute", only_ranked)
    return session


@pytest.fixture(params=[by_sessionmaker, by_class, by_instance])
def filtering(request: pytest.FixtureRequest) -> Callable[[World], Session]:
    def make(world: World) -> Session:
        session: Session = request.param(world)
        world.stack.callback(session.close)
        return session

    return make


def test_rows_that_the_session_hides_are_not_found(world: World, filtering: Callable[[World], Session]):
    world.add(Video(id=1), Video(id=2, rank=1), Video(id=3), Video(id=4, rank=1))
    session = filtering(world)
    assert first_reserved(session, ALL, KEY).id == 2  # type: ignore[union-attr]
    assert [video.id for video in each_reserved(session, ALL, KEY)] == [4]
    assert first_reserved(session, ALL, KEY) is None
    assert world.reserved() == [2, 4]


def test_many_hidden_rows_are_passed_over_by_the_search_itself(
    database: World, filtering: Callable[[World], Session]
):
    database.add_videos(300)
    database.add(Video(id=301, rank=1), Video(id=302, rank=1))
    session = filtering(database)
    first_reserved(session, ALL, "to prepare")
    with statements() as sent:
        assert first_reserved(session, ALL, KEY).id == 301  # type: ignore[union-attr]
    assert len(sent) <= 5


def test_related_rows_that_the_session_hides_are_not_loaded(
    apart: World, filtering: Callable[[World], Session]
):
    apart.add(Video(id=1, rank=1, comments=[Comment(text="seen"), Comment(text="hidden")]))
    session = filtering(apart)
    found = first_reserved(session, ALL.options(selectinload(Video.comments)), KEY)
    assert found is not None
    assert [comment.text for comment in found.comments] == ["seen"]


def test_the_callers_own_listeners_are_as_they_were(some: World):
    some.add_videos(2, rank=1)
    session = by_instance(some)
    some.stack.callback(session.close)
    take_reserved(session, ALL, KEY, limit=2)
    assert list(session.dispatch.do_orm_execute) == [only_ranked]
    assert len(session.scalars(ALL).all()) == 2


def test_a_session_class_with_state_of_its_own_is_understood(some: World):
    class Tenant(Session):
        def __init__(self, bind: Any, *, rank: int) -> None:
            super().__init__(bind)
            self.rank = rank

    @event.listens_for(Tenant, "do_orm_execute")
    def own(state: ORMExecuteState) -> None:
        if state.is_select:
            rank = state.session.rank  # type: ignore[attr-defined]
            state.statement = state.statement.options(with_loader_criteria(Video, Video.rank == rank))

    some.add(Video(id=1, rank=1), Video(id=2, rank=2))
    session = Tenant(some.engine, rank=2)
    some.stack.callback(session.close)
    assert first_reserved(session, ALL, KEY).id == 2  # type: ignore[union-attr]
    assert first_reserved(session, ALL, KEY) is None


def test_a_listener_that_answers_from_a_cache_does_no_harm(some: World):
    some.add_videos(1)
    session = some.session()

    def cached(state: ORMExecuteState) -> Any:
        return state.invoke_statement() if state.is_select else None

    event.listen(session, "do_orm_execute", cached)
    assert first_reserved(session, ALL, KEY) is not None
