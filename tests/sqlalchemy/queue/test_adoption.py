"""A table that is there already becomes a queue by the migration that Alembic writes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata, produce_migrations, render_python_code
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from reservable import Queued
from tests.stores import DATABASES

GUIDE = Path(__file__).parents[3] / "docs" / "queue.md"


class Base(DeclarativeBase):
    pass


class Video(Queued, Base):
    __tablename__ = "videos"
    id: Mapped[int] = mapped_column(primary_key=True)


@pytest.fixture(params=DATABASES)
def engine(request: Any, fresh_database: Callable[[str], str], make_engine: Callable[..., Engine]) -> Engine:
    """A database with a table of videos that is no queue, and one video."""
    engine = make_engine(fresh_database(request.param))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE videos (id INTEGER NOT NULL PRIMARY KEY)"))
        connection.execute(text("INSERT INTO videos VALUES (1)"))
    return engine


def migrate(engine: Engine) -> list[Any]:
    """Run what autogenerate writes, as the text that it is; what it would write then."""
    batch = engine.dialect.name == "sqlite"  # adds no column whose default is the time
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"target_metadata": Base.metadata, "render_as_batch": batch}
        )
        steps = produce_migrations(context, Base.metadata).upgrade_ops
        assert steps is not None
        written = render_python_code(steps, render_as_batch=batch, migration_context=context)
        source = "import sqlalchemy as sa\nimport reservable.leasing.columns\ndef upgrade(op):\n    "
        module: dict[str, Any] = {}
        exec(source + written, module)
        with Operations.context(context) as op:
            module["upgrade"](op)
        connection.commit()
        return list(compare_metadata(context, Base.metadata))


def test_what_alembic_writes_makes_it_a_queue(engine: Engine) -> None:
    assert migrate(engine) == []
    with Session(engine) as session:
        [lease] = Video.claim(session, limit=2)
        lease.complete()
        assert Video.status_counts(session)["succeeded"] == 1


def test_an_old_column_of_times_becomes_ours_as_the_guide_says(fresh_database: Callable[[str], str]) -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    _, _, rest = guide.partition("    ALTER TABLE videos\n")
    conversion = "ALTER TABLE videos " + rest.partition("\n\n")[0]
    engine = create_engine(fresh_database("postgresql"))
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        for statement in (
            "ALTER TABLE videos ALTER retry_at DROP DEFAULT",
            "ALTER TABLE videos ALTER retry_at TYPE timestamptz USING NULL",
            "INSERT INTO videos (id, retry_at) VALUES (1, '2030-01-01 12:00:00.123456+02:00')",
            conversion,
            "INSERT INTO videos (id) VALUES (2)",
        ):
            connection.execute(text(statement))
    with Session(engine) as session:
        assert session.get_one(Video, 1).retry_at == datetime(2030, 1, 1, 10, 0, 0, 123456, UTC)
        assert [lease.row.id for lease in Video.claim(session, limit=2)] == [2]
    engine.dispose()
