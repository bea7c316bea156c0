"""Rows of several schemas under one model: `schema_translate_map`."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from reservable import Reservable, configure, first_reserved


class Base(DeclarativeBase):
    pass


class Parcel(Reservable, Base):
    __tablename__ = "parcels"
    id: Mapped[int] = mapped_column(primary_key=True)


class Crate(Reservable, Base):
    __tablename__ = "crates"
    __reservable_name__ = "boxes"
    id: Mapped[int] = mapped_column(primary_key=True)


@pytest.fixture
def engine(fresh_database, make_engine) -> Engine:
    engine = make_engine(fresh_database("postgresql"))
    with engine.begin() as connection:
        for tenant, number in (("north", 1), ("south", 2)):
            connection.execute(text(f"CREATE SCHEMA {tenant}"))
            Base.metadata.create_all(connection.execution_options(schema_translate_map={None: tenant}))
            for row in (number, 7):
                connection.execute(text(f"INSERT INTO {tenant}.parcels VALUES ({row})"))
    return engine  # type: ignore[no-any-return]


def of(engine: Engine, tenant: str) -> Session:
    return Session(engine.execution_options(schema_translate_map={None: tenant}))


def test_rows_of_two_schemas_do_not_share_their_reservations(engine):
    with of(engine, "north") as north, of(engine, "south") as south:
        ours, theirs = north.get_one(Parcel, 7), south.get_one(Parcel, 7)
        assert ours.reserve("pack")
        assert theirs.reserve("pack")
        assert ours.reservation("pack").name == "north.parcels:7:pack"
        assert theirs.reservation("pack").name == "south.parcels:7:pack"


def test_a_chosen_name_is_kept_apart_too(engine):
    with of(engine, "north") as north:
        crate = Crate(id=1)
        north.add(crate)
        assert crate.reservation("pack").name == "north.boxes:1:pack"


def test_the_map_of_a_connection_in_use_counts(engine):
    with Session(engine) as session:
        session.connection(execution_options={"schema_translate_map": {None: "south"}})
        assert session.get_one(Parcel, 2).reservation("pack").name == "south.parcels:2:pack"


def test_rows_are_found_in_the_schema_that_the_session_means(engine):
    with of(engine, "north") as north, of(engine, "south") as south:
        in_order = select(Parcel).order_by(Parcel.id)
        first, second = (first_reserved(session, in_order, "pack") for session in (north, south))
        assert first is not None
        assert second is not None
        assert (first.id, second.id) == (1, 2)
        assert not first.reserve("pack")
        assert first.release("pack")
        assert second.is_reserved("pack")


def of_a_connection(engine: Engine, tenant: str) -> Session:
    """A session whose map ends with its transaction."""
    session = Session(engine)
    session.connection(execution_options={"schema_translate_map": {None: tenant}})
    return session


@pytest.fixture
def untranslated(engine: Engine) -> Parcel:
    """What somebody else holds: the row of the same primary key where no map leads."""
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE parcels (id INTEGER PRIMARY KEY)"))
        connection.execute(text("INSERT INTO parcels VALUES (7)"))
    with Session(engine) as session:
        parcel = session.get_one(Parcel, 7)
        session.expunge(parcel)
    configure(engine)
    assert parcel.reserve("pack", 600)
    return parcel


def test_a_grant_is_released_by_its_own_name_when_the_map_is_over(engine, untranslated):
    with of_a_connection(engine, "north") as session:
        ours = first_reserved(session, select(Parcel).where(Parcel.id == 7), "pack", 600)
        assert ours is not None
        session.commit()
        assert ours.is_reserved("pack")
        assert not ours.reserve("pack")
        assert ours.reservation("pack").name == "north.parcels:7:pack"
        assert ours.release("pack") is True
        assert ours.release("pack") is False
    with of(engine, "north") as session:
        assert not session.get_one(Parcel, 7).is_reserved("pack")
    assert untranslated.reservation("pack").held
    untranslated.reservation("pack").check()


@pytest.mark.parametrize("leave", [Session.close, Session.expunge_all])
def test_a_grant_is_released_by_its_own_name_without_a_session(engine, untranslated, leave):
    session = of(engine, "south")
    ours = session.get_one(Parcel, 7)
    assert ours.reserve("pack", 600)
    leave(session)
    assert ours.release("pack") is True
    assert ours.release("pack") is False
    untranslated.reservation("pack").check()
    with of(engine, "south") as again:
        assert not again.get_one(Parcel, 7).is_reserved("pack")


@pytest.mark.parametrize("leave", [Session.close, Session.expunge_all, Session.commit])
def test_who_was_refused_breaks_nobodys_reservation_when_the_map_is_over(engine, untranslated, leave):
    with of(engine, "north") as first, of_a_connection(engine, "north") as second:
        holder, refused = first.get_one(Parcel, 7), second.get_one(Parcel, 7)
        assert holder.reserve("pack", 600)
        assert not refused.reserve("pack")
        leave(second)
        assert refused.release("pack") is False
        untranslated.reservation("pack").check()
        assert holder.release("pack") is True
