"""Bind parameters of the caller's, whatever they are called; and whose database a statement is sent to."""

from __future__ import annotations

import psycopg
import pytest
from sqlalchemy import Engine, String, bindparam, create_engine, event, func, literal, select, text
from sqlalchemy.exc import InvalidRequestError, StatementError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from reservable import Reservable, configure, first_reserved, take_reserved


class Base(DeclarativeBase):
    pass


class Clip(Reservable, Base):
    __tablename__ = "clips"
    id: Mapped[int] = mapped_column(primary_key=True)
    path: Mapped[str | None] = mapped_column(String(50))


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def engine(request, fresh_database, make_engine) -> Engine:
    engine = make_engine(fresh_database(request.param))
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Clip(id=1, path="a"), Clip(id=2, path="b"), Clip(id=3, path="c")])
        session.commit()
    return engine  # type: ignore[no-any-return]


@pytest.fixture(params=["beside the rows", "elsewhere"])
def session(request, engine):
    if request.param == "elsewhere":
        configure("memory://")
    with Session(engine) as session:
        yield session
    configure(None)


@pytest.mark.parametrize(
    "name", ["x:y z", "x.y", "per%cent", "br(a)ck[et]", "param_1", "fence_1", "substr_1"]
)
def test_a_parameter_may_have_any_name(session, name):
    found = first_reserved(session, select(Clip).where(Clip.id == bindparam(name, 2)), "pack")
    assert found is not None
    assert found.id == 2


def test_a_forgotten_value_is_told_and_is_not_null(session):
    forgotten = select(Clip).where(Clip.path == bindparam("wanted"))
    with pytest.raises((StatementError, InvalidRequestError), match="wanted"):
        first_reserved(session, forgotten, "pack")
    found = first_reserved(session, forgotten.params(wanted="b"), "pack")
    assert found is not None
    assert found.id == 2


def test_a_shape_first_met_without_values_serves_those_with_values(session):
    def statement(value):
        return (
            select(Clip)
            .where(func.coalesce(literal(value, String), Clip.path) == Clip.path)
            .order_by(Clip.id)
        )

    assert len(take_reserved(session, statement(None), "first", limit=5)) == 3
    assert [clip.id for clip in take_reserved(session, statement("b"), "second", limit=5)] == [2]


def two_places(fresh_database, numbers):
    """Engines on two databases that no part of their URLs tells apart."""
    for number in numbers:
        url = fresh_database("postgresql").replace("postgresql+psycopg", "postgresql")
        made = create_engine("postgresql+psycopg://", creator=lambda url=url: psycopg.connect(url))
        Base.metadata.create_all(made)
        with Session(made) as session:
            session.add(Clip(id=number))
            session.commit()
        yield made


def test_databases_that_look_alike_by_their_urls_are_not_taken_for_one(fresh_database):
    here, there = two_places(fresh_database, (1, 2))
    try:
        configure(here)
        with Session(there) as session:
            found = first_reserved(session, select(Clip), "pack")
            assert found is not None
            assert found.id == 2
    finally:
        configure(None)
        here.dispose()
        there.dispose()


def test_a_listener_that_says_at_checkout_whose_rows_are_seen_is_asked_every_time(
    fresh_database, make_engine
):
    engine = make_engine(fresh_database("postgresql"))
    with engine.begin() as connection:
        for number, tenant in enumerate(("north", "south"), 1):
            connection.execute(text(f"CREATE SCHEMA {tenant}"))
            connection.execute(text(f"CREATE TABLE {tenant}.clips (id int primary key, path text)"))
            connection.execute(text(f"INSERT INTO {tenant}.clips VALUES ({number}), (7)"))
    chosen: dict[str, str] = {}

    @event.listens_for(engine, "checkout")
    def choose(driver, *_):
        driver.execute(f"SET search_path TO {chosen['tenant']}, public")
        if not driver.autocommit:
            driver.commit()

    for chosen["tenant"], number in (("north", 1), ("south", 2)):
        with Session(engine) as session:
            found = first_reserved(session, select(Clip).order_by(Clip.id), "pack")
            assert found is not None
            assert found.id == number
