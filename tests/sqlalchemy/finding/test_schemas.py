"""Tables in a schema of their own, and schemas that are only known when the program runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import ForeignKey, String, create_engine, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload

from reservable import Reservable, first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Video
from tests.sqlalchemy.finding.worlds import KEY, World, close_own_connections


class Base(DeclarativeBase):
    pass


class Owner(Base):
    __tablename__ = "owners"
    __table_args__ = {"schema": "archive"}  # noqa: RUF012 - SQLAlchemy's own way

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(20))


class Tape(Reservable, Base):
    __tablename__ = "tapes"
    __table_args__ = {"schema": "archive"}  # noqa: RUF012 - as above

    id: Mapped[int] = mapped_column(primary_key=True)
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("archive.owners.id"))
    owner: Mapped[Owner | None] = relationship()


@pytest.fixture
def archive(server: World) -> Iterator[World]:
    names = ["archive", "tenant_a", "tenant_b"]
    if server.database == "mariadb":  # where a schema is a database, beside all others of the server
        pytest.skip("a schema of MariaDB's is another database")
    for name in names:
        server.run(f"CREATE SCHEMA {name}")
    try:
        yield server
    finally:
        for name in names:
            server.run(f"DROP SCHEMA {name} CASCADE")


def test_rows_of_a_table_in_a_schema_are_found(archive: World):
    Base.metadata.create_all(archive.engine)
    archive.add(Owner(id=1, name="a"), Tape(id=1, owner_id=1), Tape(id=2))
    session = archive.session()
    statement = select(Tape).join(Tape.owner).options(selectinload(Tape.owner))
    found = first_reserved(session, statement, KEY)
    assert found is not None
    assert found.owner is not None
    assert found.reservation(KEY).name == f"archive.tapes:1:{KEY}"
    assert [tape.id for tape in take_reserved(session, select(Tape), KEY, limit=5)] == [2]
    assert found.release(KEY)


def by_engine(world: World) -> Session:
    return Session(world.engine.execution_options(schema_translate_map={"archive": "tenant_b"}))


def by_connection(world: World) -> Session:
    return Session(world.connect(schema_translate_map={"archive": "tenant_b"}))


@pytest.mark.parametrize("bind", [by_engine, by_connection])
def test_a_schema_chosen_by_the_engine_or_the_connection_is_the_one_searched(archive: World, bind: object):
    for tenant, first in (("tenant_a", 1), ("tenant_b", 11)):
        engine = archive.engine.execution_options(schema_translate_map={"archive": tenant})
        Base.metadata.create_all(engine)
        with Session(engine) as session:
            session.add_all([Tape(id=first), Tape(id=first + 1)])
            session.commit()
    session = bind(archive)  # type: ignore[operator]
    archive.stack.callback(session.close)
    found = take_reserved(session, select(Tape).order_by(Tape.id), KEY, limit=5)
    assert [tape.id for tape in found] == [11, 12]


def test_a_schema_on_the_search_path_is_the_one_searched(archive: World):
    if archive.beside:
        pytest.skip("there the search path decides where the table of reservations is as well")
    archive.run("CREATE TABLE tenant_a.videos (LIKE public.videos)")
    archive.run("INSERT INTO tenant_a.videos (id, title) VALUES (77, 'theirs')")
    engine = create_engine(archive.engine.url, connect_args={"options": "-c search_path=tenant_a,public"})
    try:
        with Session(engine) as session:
            assert session.execute(text("SELECT count(*) FROM videos")).scalar() == 1
            session.rollback()
            assert first_reserved(session, select(Video), KEY).id == 77  # type: ignore[union-attr]
    finally:
        close_own_connections(engine)
        engine.dispose()
