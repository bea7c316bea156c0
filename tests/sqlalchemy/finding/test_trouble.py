"""When something fails nothing is left half done: an error, never None, and no reservation without an owner."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import create_engine, event, make_url, select, text
from sqlalchemy.orm import Session

from reservable import BackendError, configure, each_reserved, first_reserved, take_reserved
from tests.proxy import Proxy
from tests.sqlalchemy.finding.models import Video
from tests.sqlalchemy.finding.worlds import KEY, REREAD, World, before_statement, close_own_connections

ALL = select(Video).order_by(Video.id)


class Failure(Exception):
    pass


def fail() -> None:
    raise Failure


def test_an_error_while_the_row_is_read_gives_it_back(world: World):
    world.add_videos(3)
    for find in (
        lambda session: first_reserved(session, ALL, KEY),
        lambda session: take_reserved(session, ALL, KEY, limit=2),
        lambda session: next(each_reserved(session, ALL, KEY)),
    ):
        with before_statement(REREAD, fail) as seen, pytest.raises(Failure):
            find(world.session())
        assert seen
        assert world.reserved() == []


def test_an_interrupt_while_the_row_is_read_gives_it_back(shared: World):
    shared.add_videos(1)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with before_statement(REREAD, interrupt), pytest.raises(KeyboardInterrupt):
        first_reserved(shared.session(), ALL, KEY)
    assert shared.reserved() == []


def test_an_error_in_a_listener_of_the_users_gives_the_row_back(world: World):
    world.add_videos(1)

    def broken(*_: Any) -> None:
        raise Failure

    event.listen(Video, "load", broken)
    try:
        with pytest.raises(Failure):
            first_reserved(world.session(), ALL, KEY)
    finally:
        event.remove(Video, "load", broken)
    assert world.reserved() == []


def test_an_error_at_a_later_row_gives_back_the_earlier_ones(shared: World):
    """Half of them have been handed over when the rest fails: the caller would never hear of them."""
    shared.add_videos(4)
    session = shared.session()
    rereads = []

    def at_the_second() -> None:
        rereads.append(1)
        if len(rereads) == 2:
            raise Failure
        shared.run("UPDATE videos SET path = '/x' WHERE id = 1")

    statement = ALL.where(Video.path.is_(None))
    with before_statement(REREAD, at_the_second, times=2), pytest.raises(Failure):
        take_reserved(session, statement, KEY, limit=3)
    assert len(rereads) == 2
    assert shared.reserved() == []


def test_a_time_that_is_over_before_the_row_is_read_is_an_error_and_not_none(world: World):
    world.add_videos(3)
    with (
        before_statement(REREAD, lambda: time.sleep(0.02)),
        pytest.raises(BackendError, match="longer"),
    ):
        first_reserved(world.session(), ALL, KEY, 0.01)
    assert world.reserved() == []


def test_an_error_of_the_database_is_a_backend_error_with_its_cause(world: World):
    world.add_videos(1)
    statement = select(Video).where(text("no_such_column = 1"))
    with pytest.raises(BackendError, match="no_such_column") as caught:
        first_reserved(world.session(), statement, KEY)
    assert caught.value.__cause__ is not None
    assert world.reserved() == []
    assert first_reserved(world.session(), ALL, KEY) is not None


@pytest.fixture
def through_proxy(server: World) -> Any:
    """A session whose server, and Redis if there is one, are behind a proxy each."""
    address = server.engine.url
    assert address.port
    with Proxy(address.port) as proxy:
        engine = create_engine(address.set(port=proxy.port))
        session = Session(engine)
        try:
            yield proxy, session
        finally:
            proxy.resume()
            session.close()
            close_own_connections(engine)
            engine.dispose()


@pytest.mark.parametrize("lost", [1, 2])
def test_a_lost_reply_of_the_search_leaves_no_row_without_an_owner(
    server: World, through_proxy: tuple[Proxy, Session], lost: int
):
    proxy, session = through_proxy
    server.add_videos(5)
    assert len(take_reserved(session, ALL, "to connect", limit=2)) == 2
    proxy.drop_next_reply(lost)  # of the search beside the rows, or of the reading of the keys
    found = take_reserved(session, ALL, KEY, "1 hour", limit=2)
    assert proxy.dropped == lost
    assert [video.id for video in found] == [1, 2]
    assert server.reserved() == [1, 2]
    assert all(video.release(KEY) for video in found)


def test_a_lost_reply_of_the_reading_leaves_no_row_without_an_owner(
    server: World, through_proxy: tuple[Proxy, Session]
):
    proxy, session = through_proxy
    server.add_videos(2)
    assert first_reserved(session, ALL, "to connect") is not None
    with before_statement(REREAD, proxy.drop_next_reply):
        found = first_reserved(session, ALL, KEY)
    assert found is not None
    assert server.reserved() == [found.id] == [1]


def test_a_connection_that_stays_broken_while_the_row_is_read_is_an_error(
    server: World, through_proxy: tuple[Proxy, Session]
):
    proxy, session = through_proxy
    server.add_videos(2)
    assert first_reserved(session, ALL, "to connect") is not None
    with before_statement(REREAD, lambda: proxy.drop_next_reply(1_000)), pytest.raises(BackendError):
        first_reserved(session, ALL, KEY)
    proxy.drop_next_reply(0)
    if not server.beside:  # else the way to the reservations was the broken one: they run out
        assert server.reserved() == []


def test_a_lost_reply_of_redis_leaves_no_row_without_an_owner(
    make_world: Callable[[str], World], redis_url: str
):
    world = make_world("redis+sqlite")
    world.add_videos(5)
    port = make_url(redis_url).port
    assert port
    number = 1001
    with Proxy(port) as proxy:
        backend = configure(f"redis://127.0.0.1:{proxy.port}/{number}")
        assert backend is not None
        assert first_reserved(world.session(), ALL, "to connect") is not None
        proxy.drop_next_reply()
        found = take_reserved(world.session(), ALL, KEY, "1 hour", limit=2)
        assert proxy.dropped == 1
        assert [video.id for video in found] == [1, 2]
        assert sorted(holder.name for holder in backend.list(f"*:{KEY}")) == [
            f"videos:1:{KEY}",
            f"videos:2:{KEY}",
        ]
        for video in found:
            assert video.release(KEY)
        configure()


def test_a_store_that_is_down_is_an_error_and_never_none(make_world: Callable[[str], World]):
    world = make_world("sqlite")
    world.add_videos(1)
    configure("redis://127.0.0.1:1/0")
    try:
        with pytest.raises(BackendError):
            first_reserved(world.session(), ALL, KEY)
        with pytest.raises(BackendError):
            take_reserved(world.session(), ALL, KEY, limit=2)
        with pytest.raises(BackendError):
            next(each_reserved(world.session(), ALL, KEY))
    finally:
        configure()


def test_a_database_that_is_down_is_an_error_and_never_none(server: World):
    address = server.engine.url.set(port=1)
    engine = create_engine(address)
    with Session(engine) as session, pytest.raises(BackendError):
        first_reserved(session, ALL, KEY)
    close_own_connections(engine)
