"""configure, RESERVABLE_URL and __reservable_backend__: where reservations live, and who we say we are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis
from sqlalchemy import Engine, create_engine, inspect, make_url
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from reservable import Backend, ConfigurationError, Reservable, configure, reservation
from reservable.backends.memory import MemoryBackend
from reservable.sqlalchemy.homes import default_store
from tests.sqlalchemy.models import Base, Video

Sessions = Callable[..., Session]


@pytest.fixture
def video(tmp_path, make_engine: Callable[..., Engine], sessions: Sessions) -> Video:
    engine = make_engine(f"sqlite:///{tmp_path}/videos.sqlite")
    Base.metadata.create_all(engine)
    session = sessions(engine)
    session.add(Video())
    session.commit()
    video = session.get_one(Video, 1)
    session.commit()
    return video


def backend_of(video: Any) -> Backend:
    backend: Backend = video.reservation("download").backend
    return backend


def test_by_default_reservations_are_in_the_models_own_database(video):
    assert configure() is None
    assert video.reserve("download")
    engine = inspect(video).session.get_bind()
    assert inspect(engine).has_table("reservations")


def test_a_url_an_engine_a_client_and_a_backend_are_places(fresh_database, make_engine, video):
    url = fresh_database("redis")
    sqlite = fresh_database("sqlite")
    own = MemoryBackend()
    with redis.Redis.from_url(url) as client:
        for where in (url, client, sqlite, make_url(sqlite), make_engine(sqlite), own, "memory://"):
            backend = configure(where)
            assert isinstance(backend, Backend)
            assert backend_of(video).prefix == backend.prefix == ""
            assert video.reserve("download"), where
            assert [holder.name for holder in backend.list("videos:*")] == ["videos:1:download"]
            assert video.release("download")
            assert backend.prune() >= 0
        assert client.ping()  # replaced, and still the user's own
    assert configure(own) is own


class Text(str):
    __slots__ = ()


def test_a_subclass_of_str_is_a_url(video, tmp_path):
    configure(Text(f"sqlite:///{tmp_path}/text.sqlite"))
    assert video.reserve("download")


def test_a_later_call_replaces_an_earlier_one_and_none_goes_back_to_the_default(video):
    first, second = MemoryBackend(), MemoryBackend()
    configure(first)
    assert video.reserve("download")
    configure(second)
    assert not video.is_reserved("download")
    assert backend_of(Video(id=1)) is second
    configure(None)
    assert video.reserve("download")
    assert not list(second.list())
    with pytest.raises(ConfigurationError):
        Video(id=1).reserve("download")


def test_the_environment_names_the_default(video, monkeypatch, tmp_path):
    monkeypatch.setenv("RESERVABLE_URL", f"sqlite:///{tmp_path}/environment.sqlite")
    backend = configure(None)
    assert "environment.sqlite" in repr(backend)
    assert Video(id=1).reserve("download")
    own = configure(MemoryBackend())
    assert backend_of(video) is own
    monkeypatch.setenv("RESERVABLE_URL", "")
    assert configure(None) is None


def test_the_environment_is_read_when_it_is_first_needed(monkeypatch):
    monkeypatch.setattr("reservable.config._settings", None)
    monkeypatch.setenv("RESERVABLE_URL", "memory://")
    assert reservation("nightly").acquire()


def test_a_bad_call_leaves_the_earlier_configuration(video):
    own = configure(MemoryBackend())
    for bad in ({"where": 5}, {"prefix": "x" * 65}, {"where": "nonsense://h"}):
        with pytest.raises(ConfigurationError):
            configure(**bad)
    assert backend_of(video) is own


def test_prefixes_never_see_each_other(fresh_database, video):
    url = fresh_database("redis")
    configure(url, prefix="a:")
    assert video.reserve("download")
    configure(url, prefix="b:")
    assert Video(id=1).reserve("download")
    with redis.Redis.from_url(url, decode_responses=True) as client:
        assert sorted(client.scan_iter()) == ["a:videos:1:download", "b:videos:1:download"]
    configure(prefix="a:")
    assert video.reserve("default")
    configure(prefix="b:")
    assert video.reserve("default")


def model_in(where: Any) -> Any:
    """A model that says where its reservations live."""

    class Own(DeclarativeBase):
        pass

    class Elsewhere(Reservable, Own):
        __tablename__ = "videos"
        __reservable_backend__ = where
        id: Mapped[int] = mapped_column(primary_key=True)

    return Elsewhere


def test_a_model_may_say_where_its_own_reservations_live(fresh_database):
    configure(MemoryBackend())
    own = MemoryBackend()
    assert backend_of(model_in(own)(id=1)) is own
    url = fresh_database("sqlite")
    elsewhere = model_in(url)
    assert elsewhere(id=1).reserve("download")
    assert elsewhere(id=1).is_reserved("download")
    assert not Video(id=1).is_reserved("download")
    assert "fresh" in repr(backend_of(elsewhere(id=1)))


def test_classes_that_share_rows_share_the_store_that_their_parent_names():
    parent = model_in("memory://")
    child = type("Child", (parent,), {})
    assert parent(id=1).reserve("download")
    assert not child(id=1).reserve("download")


def test_a_models_own_store_follows_the_configured_prefix(fresh_database):
    elsewhere = model_in(fresh_database("sqlite"))
    configure(prefix="a:")
    assert elsewhere(id=1).reserve("download")
    configure(prefix="b:")
    assert not elsewhere(id=1).is_reserved("download")
    assert backend_of(elsewhere(id=1)).prefix == "b:"


def test_a_bad_store_of_a_model_is_a_configuration_error():
    for bad in (5, "nonsense://h"):
        with pytest.raises(ConfigurationError):
            model_in(bad)(id=1).reserve("download")


@pytest.mark.parametrize(
    ("owner", "shown"),
    [
        ("worker 7", "worker 7"),
        ("x" * 1000, "x" * 255),
        ("a\x00b", "a?b"),
        ("a\ud800b", "a?b"),
        ("ü🎬" * 200, None),
    ],
    ids=["plain", "long", "nul", "surrogate", "wide"],
)
def test_any_owner_label_can_be_kept_by_every_store(any_store_url, owner, shown):
    configure(any_store_url, owner=owner)
    handle = Video(id=1).reservation("download")
    with handle:
        holder = handle.holder()
        assert holder is not None
        assert holder.owner == handle.owner == (shown or owner[:255])


def test_disposing_of_the_engine_closes_our_connections_too(fresh_database, make_engine):
    engine = make_engine(fresh_database("postgresql"))
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        video = Video()
        session.add(video)
        session.commit()
        assert video.reserve("download")
        pool = backend_of(video).connections.engine.pool  # type: ignore[attr-defined]
        assert pool.checkedin() == 1
        engine.dispose()
        assert pool.checkedin() == 0
        assert video.release("download")


def test_notify_is_for_the_databases_that_can(tmp_path, postgresql_url):
    configure(None, notify=True)
    for url, tells in ((postgresql_url, True), (f"sqlite:///{tmp_path}/x.sqlite", False)):
        engine = create_engine(url)
        assert default_store(engine).blocking.capabilities.tells is tells
        engine.dispose()
