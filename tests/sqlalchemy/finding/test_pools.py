"""Finding takes no connection from the caller's pool, so no worker waits for another's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import NullPool, select, text
from sqlalchemy.orm import Session

from reservable import first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Video
from tests.sqlalchemy.finding.worlds import KEY, World, fresh_engine

ALL = select(Video).order_by(Video.id)


def test_threads_that_hold_every_connection_of_their_pool_all_find(server: World):
    server.add_videos(5)
    engine = fresh_engine(server, pool_size=5, max_overflow=0, pool_timeout=2)
    barrier = Barrier(5)

    def work(_: int) -> int:
        with Session(engine) as session:
            session.execute(text("SELECT 1"))
            barrier.wait(10)
            found = first_reserved(session, ALL, KEY)
            barrier.wait(10)
            assert found is not None
            return found.id

    with ThreadPoolExecutor(5) as pool:
        assert sorted(pool.map(work, range(5))) == [1, 2, 3, 4, 5]


def test_an_engine_without_a_pool_will_do(shared: World):
    shared.add_videos(3)
    session = shared.session(fresh_engine(shared, poolclass=NullPool))
    assert [first_reserved(session, ALL, KEY).id for _ in range(3)] == [1, 2, 3]  # type: ignore[union-attr]


def test_threads_share_one_engine_and_no_row(shared: World):
    shared.add_videos(60)

    def work(_: int) -> list[int]:
        got = []
        with Session(shared.engine) as session:
            while (video := first_reserved(session, ALL, KEY, "1 hour")) is not None:
                got.append(video.id)
        return got

    with ThreadPoolExecutor(6) as pool:
        got = [one for some in pool.map(work, range(6)) for one in some]
    assert sorted(got) == list(range(1, 61))


def test_threads_take_several_rows_at_once_and_share_none(shared: World):
    shared.add_videos(60)

    def work(_: int) -> list[int]:
        got: list[int] = []
        with Session(shared.engine) as session:
            while videos := take_reserved(session, ALL, KEY, "1 hour", limit=4):
                got += [video.id for video in videos]
        return got

    with ThreadPoolExecutor(6) as pool:
        got = [one for some in pool.map(work, range(6)) for one in some]
    assert sorted(got) == list(range(1, 61))


@pytest.mark.parametrize("level", ["SERIALIZABLE", "REPEATABLE READ"])
def test_threads_on_an_engine_with_a_strict_isolation_level_see_no_serialization_failure(
    server: World, level: str
):
    server.add_videos(40)
    engine = fresh_engine(server, isolation_level=level, pool_size=6)

    def work(_: int) -> list[int]:
        got = []
        with Session(engine) as session:
            while (video := first_reserved(session, ALL, KEY, "1 hour")) is not None:
                got.append(video.id)
        return got

    with ThreadPoolExecutor(6) as pool:
        got = [one for some in pool.map(work, range(6)) for one in some]
    assert sorted(got) == list(range(1, 41))
