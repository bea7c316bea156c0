"""The table of reservations in the model's own database: made when first needed, and known to migrations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, inspect, select, text
from sqlalchemy.orm import Session

from reservable import BackendError, ConfigurationError, configure, first_reserved
from tests.processes import race
from tests.sqlalchemy import workers
from tests.sqlalchemy.models import Base, Video
from tests.stores import DATABASES

Sessions = Callable[..., Session]
IN_ORDER: Any = select(Video).order_by(Video.id)


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, fresh_database: Callable[[str], str]) -> str:
    return fresh_database(request.param)


@pytest.fixture
def engine(url: str, make_engine: Callable[..., Engine]) -> Engine:
    """A database with the models' tables and without ours."""
    engine = make_engine(url)
    Base.metadata.create_all(engine, tables=[Base.metadata.tables["videos"]])
    return engine


@pytest.fixture
def videos(engine: Engine, sessions: Sessions) -> list[Video]:
    session = sessions(engine)
    session.add_all([Video(title=str(number)) for number in range(8)])
    session.commit()
    videos = list(session.scalars(select(Video).order_by(Video.id)))
    session.commit()
    return videos


def has_table(engine: Engine, name: str = "reservations", schema: str | None = None) -> bool:
    return inspect(engine).has_table(name, schema=schema)


@pytest.mark.parametrize("verb", ["reserve", "is_reserved", "release", "reservation"])
def test_whichever_verb_comes_first_makes_the_table(engine, videos, verb):
    assert not has_table(engine)
    work = getattr(videos[0], verb)
    assert work("download").acquire() if verb == "reservation" else work("download") is (verb == "reserve")
    assert has_table(engine)


def test_finding_makes_the_table(engine, videos, sessions):
    found: Any = first_reserved(sessions(engine), IN_ORDER, "download")
    assert found.title == "0"
    assert has_table(engine)


def test_it_is_made_outside_of_the_callers_transaction(engine, videos, sessions):
    session = sessions(engine)
    session.add(Video(title="mine"))
    if engine.dialect.name != "sqlite":  # whose file has one writer at a time
        session.flush()
    video = session.get_one(Video, videos[0].id) if engine.dialect.name != "sqlite" else videos[0]
    assert video.reserve("download")
    assert has_table(engine)
    session.rollback()
    assert session.scalar(select(Video.id).where(Video.title == "mine")) is None
    assert has_table(engine)
    assert videos[0].is_reserved("download")


def test_several_processes_may_need_it_first_at_the_same_moment(engine, url, videos):
    """Every other one of them inside a transaction."""
    pks = [video.id for video in videos]
    assert race(workers.first_use, url, pks, processes=4) == [True] * 4
    assert has_table(engine)


def test_where_it_must_not_be_made_the_error_names_the_migration(engine, videos):
    configure(create=False)
    for verb in (videos[0].reserve, videos[1].is_reserved, videos[2].release):
        with pytest.raises(ConfigurationError, match=r"migration.*reservations_table.*CREATE TABLE"):
            verb("download")
    assert not has_table(engine)
    configure()
    assert videos[0].reserve("download")
    configure(create=False)
    assert videos[0].is_reserved("download")


def test_the_error_for_a_missing_table_has_ddl_that_works(engine, videos):
    configure(create=False, table="bookings")
    with pytest.raises(ConfigurationError) as refused:
        videos[0].reserve("download")
    ddl = str(refused.value).partition("run: ")[2].removesuffix(")")
    with engine.begin() as connection:
        connection.execute(text(ddl.replace(":", "\\:")))
    assert videos[0].reserve("download")


def test_a_table_and_a_schema_of_another_name(engine, videos):
    schema = None
    if engine.dialect.name == "postgresql":
        schema = "ops"
        with engine.begin() as connection:
            connection.execute(text("CREATE SCHEMA ops"))
    configure(table="Book ings", schema=schema)
    assert videos[0].reserve("download")
    assert has_table(engine, "Book ings", schema)
    assert not has_table(engine)
    with Session(engine) as session:
        assert [
            video.title for video in session.scalars(select(Video).where(Video.reserved("download")))
        ] == ["0"]
    assert first_reserved(inspect(videos[0]).session, IN_ORDER, "download") is videos[1]
    assert videos[0].release("download")


def test_a_user_who_may_not_create_tables_is_told_so(fresh_database, make_engine):
    admin = make_engine(fresh_database("postgresql"))
    Base.metadata.create_all(admin, tables=[Base.metadata.tables["videos"]])
    with admin.begin() as connection:
        connection.execute(text("DROP ROLE IF EXISTS poor"))
        connection.execute(text("CREATE ROLE poor LOGIN"))
        connection.execute(text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
        connection.execute(text("GRANT SELECT, INSERT ON videos TO poor"))
        connection.execute(text("INSERT INTO videos (id) VALUES (1)"))
    with Session(make_engine(admin.url.set(username="poor"))) as session:
        video = session.get_one(Video, 1)
        with pytest.raises(BackendError, match=r"could not be created.*permission"):
            video.reserve("download")
        assert session.get_one(Video, 1) is video
        assert session.scalar(select(Video.id)) == 1


def test_rows_and_table_may_be_deleted_by_hand(engine, videos):
    one, other = videos[:2]
    assert one.reserve("download")
    handle = one.reservation("download")
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM reservations"))
    assert handle.extend(60) is False
    assert handle.lost.is_set()
    assert one.release("download") is False
    assert one.reserve("download")
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE reservations"))
    assert one.release("download") is False
    assert other.reserve("download")


def test_whoever_creates_and_drops_the_models_tables_leaves_ours_alone(engine, videos):
    assert videos[0].reserve("download")
    inspect(videos[0]).session.close()
    Base.metadata.tables["videos"].drop(engine)
    assert has_table(engine)
