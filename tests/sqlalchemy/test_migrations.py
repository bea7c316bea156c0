"""Alembic and the table of reservations: once it is in the user's metadata, autogenerate has nothing to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, MetaData, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from reservable import Reservable, configure
from reservable.backends.database import reservations_table
from tests.stores import DATABASES

NAMING = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


@pytest.fixture(params=DATABASES)
def engine(request: Any, fresh_database: Callable[[str], str], make_engine: Callable[..., Engine]) -> Engine:
    engine = make_engine(fresh_database(request.param))
    if request.param == "postgresql":
        with engine.begin() as connection:
            connection.execute(text("CREATE SCHEMA ops"))
    return engine


def project(metadata: MetaData | None = None) -> Any:
    """A base of the user's own and a model on it."""

    class Base(DeclarativeBase):
        pass

    if metadata is not None:
        Base.metadata = metadata

    class Thing(Reservable, Base):
        __tablename__ = "things"
        id: Mapped[int] = mapped_column(primary_key=True)

    return Base, Thing


def changes(engine: Engine, *metadata: MetaData) -> list[Any]:
    """What Alembic would put into a migration."""
    with engine.connect() as connection:
        # To MySQL every other database is a schema.
        schemas = engine.dialect.name == "postgresql"
        options = {"compare_type": True, "compare_server_default": True, "include_schemas": schemas}
        context = MigrationContext.configure(connection, opts=options)
        together: Any = list(metadata) if len(metadata) > 1 else metadata[0]
        return list(compare_metadata(context, together))


def use(engine: Engine, model: Any) -> None:
    with Session(engine) as session:
        thing = model()
        session.add(thing)
        session.commit()
        assert thing.reserve("download")


def test_without_it_in_the_metadata_autogenerate_would_drop_it(engine):
    base, thing = project()
    base.metadata.create_all(engine)
    use(engine, thing)
    assert [change[0] for change in changes(engine, base.metadata)] == ["remove_table"]


@pytest.mark.parametrize("first", ["the library", "a migration"])
@pytest.mark.parametrize(
    "names", [{}, {"name": "bookings"}, {"schema": "ops"}, {"name": "bookings", "schema": "ops"}], ids=str
)
def test_a_table_in_the_metadata_is_no_change(engine, names, first):
    if "schema" in names and engine.dialect.name != "postgresql":
        names = {**names, "schema": None}
    base, thing = project()
    reservations_table(base.metadata, **names)
    configure(table=names.get("name", "reservations"), schema=names.get("schema"))
    if first == "a migration":
        base.metadata.create_all(engine)
        assert changes(engine, base.metadata) == []
    else:
        thing.__table__.create(engine)
    use(engine, thing)
    assert changes(engine, base.metadata) == []


def test_a_naming_convention_makes_no_change(engine):
    base, thing = project(MetaData(naming_convention=NAMING))
    reservations_table(base.metadata)
    thing.__table__.create(engine)
    use(engine, thing)
    assert changes(engine, base.metadata) == []


def test_two_bases_share_one_table(engine):
    one, thing = project()
    other, _ = project()
    other.metadata.remove(other.metadata.tables["things"])
    reservations_table(one.metadata)
    one.metadata.create_all(engine)
    other.metadata.create_all(engine)
    use(engine, thing)
    assert changes(engine, one.metadata, other.metadata) == []


def test_asking_for_it_twice_is_asking_once():
    metadata = MetaData()
    assert reservations_table(metadata) is reservations_table(metadata)
    assert list(metadata.tables) == ["reservations"]
