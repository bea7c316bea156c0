"""Rows of several schemas under one model: `schema_translate_map`."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from reservable import Reservable, first_reserved


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
