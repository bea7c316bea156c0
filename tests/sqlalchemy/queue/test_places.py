"""Where queues may be: databases in memory, schemas that are renamed, classes of other makes, other dialects' DDL."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import StaticPool, create_engine, text
from sqlalchemy.dialects import mysql
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    MappedAsDataclass,
    Session,
    declarative_base,
    mapped_column,
)
from sqlalchemy.schema import CreateIndex, CreateTable

from reservable import BackendError, Queued
from tests.sqlalchemy.queue.models import Base, Stage, Task


@pytest.mark.parametrize("shared", [True, False])
def test_a_database_in_memory(shared: bool) -> None:
    engine = create_engine("sqlite://", **({"poolclass": StaticPool} if shared else {}))
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Task(), Task()])
        session.commit()
        first, second = Task.claim(session, 2)
        with first as lease:
            lease.set(title="done")
        with second.transaction(session) as row:
            row.title = "too"
        assert Task.status_counts(session)["succeeded"] == 2
        session.commit()
        session.add(Task())
        session.flush()
        with pytest.raises(BackendError, match="commit"):
            Task.claim(session)
    engine.dispose()


def test_a_schema_in_place_of_another(fresh_database: Callable[[str], str]) -> None:
    engine = create_engine(fresh_database("postgresql"))
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA tenant"))
    tenants = engine.execution_options(schema_translate_map={None: "tenant"})
    Base.metadata.create_all(tenants)
    with Session(tenants) as session:
        session.add_all([Task(), Task()])
        session.commit()
        [lease] = Task.claim(session)
        with lease:
            lease.heartbeat()
        row = session.get_one(Task, lease.pk[0])
        assert row.status == "succeeded"
        assert row.enqueue(session)
        session.commit()
        assert len(Task.claim(session, 5)) == 2
    engine.dispose()


def test_classes_of_other_makes(fresh_database: Callable[[str], str]) -> None:
    class Old(Queued, declarative_base()):  # type: ignore[misc]
        __tablename__ = "old"
        id: Mapped[int] = mapped_column(primary_key=True)

    class Modern(DeclarativeBase):
        pass

    class Last(Modern, Queued):
        __tablename__ = "last"
        id: Mapped[int] = mapped_column(primary_key=True)

    class Data(MappedAsDataclass, DeclarativeBase):
        pass

    class Item(Queued, Data):
        __tablename__ = "items"
        id: Mapped[int] = mapped_column(primary_key=True, init=False)

    for model in (Old, Last, Item):
        engine = create_engine(fresh_database("sqlite"))
        model.metadata.create_all(engine)
        with Session(engine) as session:
            session.add(model())
            session.commit()
            [lease] = model.claim(session)
            lease.complete()
        engine.dispose()


def test_the_tables_of_mysql() -> None:
    dialect = mysql.dialect()
    table = str(CreateTable(Stage.__table__).compile(dialect=dialect))  # type: ignore[arg-type]
    assert "DEFAULT (TIMESTAMPDIFF(MICROSECOND" in table
    assert "errors MEDIUMTEXT" in table
    [index] = Stage.__table__.indexes  # type: ignore[attr-defined]
    assert "(status, priority, retry_at, id)" in str(CreateIndex(index).compile(dialect=dialect))
