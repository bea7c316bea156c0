"""Which database a session means: bound to a connection, by mapper, by a router, or to none at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Delete, Engine, Insert, Update, inspect, select
from sqlalchemy.orm import Session

from reservable import ConfigurationError, first_reserved
from tests.sqlalchemy.models import Base, Engineer, Person, Video

Sessions = Callable[..., Session]


@pytest.fixture
def make(tmp_path: Any, make_engine: Callable[..., Engine]) -> Callable[[str], Engine]:
    """A file with the models' tables and the row 1 of each."""

    def make(name: str) -> Engine:
        engine = make_engine(f"sqlite:///{tmp_path}/{name}.sqlite")
        Base.metadata.create_all(engine)
        with Session(engine) as session:
            session.add_all([Video(id=1), Engineer(id=1)])
            session.commit()
        return engine

    return make


def has_table(engine: Engine) -> bool:
    return inspect(engine).has_table("reservations")


def test_a_session_that_routes_reads_to_a_replica_reserves_on_the_primary(make):
    primary, replica = make("primary"), make("replica")

    class Routing(Session):
        def get_bind(self, mapper: Any = None, *, clause: Any = None, **_: Any) -> Any:
            writes = self._flushing or isinstance(clause, Update | Insert | Delete)
            return primary if writes else replica

    with Routing() as session:
        video = session.get_one(Video, 1)
        assert inspect(video).session is session
        assert video.reserve("download")
        assert video.is_reserved("download")
        assert has_table(primary)
        assert not has_table(replica)
        every: Any = select(Video)
        assert first_reserved(session, every, "encode") is video
        assert not has_table(replica)
        assert video.release("download")


def test_binds_by_mapper_are_honoured(make):
    videos, people = make("videos"), make("people")
    with Session(binds={Video: videos, Person: people}) as session:
        assert session.get_one(Video, 1).reserve("download")
        assert has_table(videos)
        assert not has_table(people)
        engineer = session.get_one(Engineer, 1)
        assert engineer.reserve("hire")
        assert session.scalars(select(Engineer).where(Engineer.reserved("hire"))).all() == [engineer]


def test_a_session_on_a_connection_reserves_beside_its_transaction(database, sessions):
    with database.engine.connect() as connection:
        outer = connection.begin()
        session = sessions(connection)
        if database.kind == "sqlite":
            with Session(database.engine) as other, other.begin():
                other.add(Video(title="bound"))
        else:
            session.add(Video(title="bound"))
            session.commit()  # to the savepoint
        video = session.scalars(select(Video).where(Video.title == "bound")).first()
        assert video is not None
        assert video.reserve("download")
        outer.rollback()
    assert video.release("download")


def test_a_session_without_a_database_is_a_configuration_error():
    with Session() as session:
        video = Video(id=1)
        session.add(video)
        with pytest.raises(ConfigurationError, match="configure"):
            video.reserve("download")


def test_the_callers_pool_may_be_used_up(fresh_database, make_engine):
    engine = make_engine(fresh_database("postgresql"), pool_size=2, max_overflow=0, pool_timeout=5)
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Video(id=number) for number in (1, 2)])
        session.commit()
    results: list[bool] = []
    ready = threading.Barrier(2, timeout=10)

    def work(number: int) -> None:
        with Session(engine) as session:
            video = session.get_one(Video, number)  # holds a connection
            ready.wait()
            results.append(video.reserve("download", wait=5))
            ready.wait()

    threads = [threading.Thread(target=work, args=[number]) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True, True]


def test_engines_made_by_execution_options_share_their_reservations(make):
    engine = make("options")
    serializable = engine.execution_options(isolation_level="SERIALIZABLE")
    with Session(engine) as one, Session(serializable) as other:
        assert one.get_one(Video, 1).reserve("download")
        assert not other.get_one(Video, 1).reserve("download")
        mine, theirs = (s.get_one(Video, 1).reservation("x").backend for s in (one, other))
        assert mine.connections is theirs.connections  # type: ignore[attr-defined]
