"""What cannot be configured or reached is told by an error of ours, and no error ever shows a password."""

from __future__ import annotations

import traceback

import pytest
import redis
import redis.asyncio
from sqlalchemy import make_url
from sqlalchemy.orm import Session

from reservable import BackendError, ConfigurationError, configure, reservation
from tests.sqlalchemy.models import Video

SECRET = "S3CRET"


def everything(error: BaseException) -> str:
    """The texts and reprs of an error and of every error behind it, shown or not."""
    texts, seen = [], set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            texts += [str(one), repr(one), *traceback.format_exception_only(one)]
            waiting += [one.__cause__, one.__context__]
    return " ".join(texts)


def test_a_bad_environment_is_a_configuration_error_when_it_is_first_needed(monkeypatch):
    monkeypatch.setattr("reservable.config._settings", None)
    monkeypatch.setenv("RESERVABLE_URL", f"nonsense://u:{SECRET}@h/x")
    with pytest.raises(ConfigurationError, match="RESERVABLE_URL in the environment") as refused:
        reservation("nightly")
    assert SECRET not in everything(refused.value)


@pytest.mark.parametrize(
    "options",
    [
        {"prefix": 5},
        {"prefix": "x" * 65},
        {"prefix": "a b"},
        {"prefix": "ü"},
        {"prefix": "a*"},
        {"owner": 5},
        {"owner": ""},
        {"table": ""},
        {"table": None},
        {"schema": ""},
        {"schema": 5},
    ],
)
def test_bad_options_are_configuration_errors(options):
    with pytest.raises(ConfigurationError):
        configure(**options)
    with pytest.raises(ConfigurationError):
        configure("memory://", **options)


@pytest.mark.parametrize(
    "where",
    [
        f"postgresql+psycopg://u:{SECRET}@h:port/db",
        f"postgresql+psycopg://u:@h:{SECRET}/db",
        f"postgresql://u:{SECRET}@[::1/db",
        f"u:{SECRET}@h",
        f"nonsense://u:{SECRET}@h/x",
        f"oracle://u:{SECRET}@h/x",
        f"sqlite://u:{SECRET}@h/x",
        f"mysql+pymysql://u:{SECRET}@h/d?read_timeout=abc",
        "sqlite:///x?timeout=abc",
        f"redis://u:{SECRET}@h:port",
        f"redis://u:{SECRET}@h/x",
        f"redis+sentinel://u:{SECRET}@h",
        f"redis+nonsense://u:{SECRET}@h",
        f"Redis+Cluster://u:{SECRET}@h/3",
        "sqlite://",
        "",
        "memory",
        5,
        True,
        b"redis://h",
        ["redis://h"],
        redis.Redis,
        redis.asyncio.Redis().pipeline(),
        object(),
        Session(),
    ],
    ids=lambda where: where if isinstance(where, str) else type(where).__name__,
)
def test_what_is_no_place_is_a_configuration_error_without_the_password(where):
    with pytest.raises(ConfigurationError) as refused:
        configure(where)
    assert SECRET not in everything(refused.value)
    assert isinstance(refused.value, ValueError)


def test_a_driver_that_is_missing_is_named():
    with pytest.raises(ConfigurationError, match="oracle"):
        configure("oracle://h/x")


@pytest.mark.parametrize(
    "where",
    [
        f"postgresql+psycopg://u:{SECRET}@127.0.0.1:1/db?connect_timeout=2",
        f"mysql+pymysql://u:{SECRET}@127.0.0.1:1/db",
        f"redis://u:{SECRET}@127.0.0.1:1",
        f"redis+sentinel://u:{SECRET}@127.0.0.1:1/x",
        f"redis+cluster://u:{SECRET}@127.0.0.1:1",
        f"postgresql+psycopg://127.0.0.1:1/db?password={SECRET}",
        "sqlite:////nowhere/at/all.sqlite",
    ],
)
def test_a_store_that_cannot_be_reached_is_a_backend_error_without_the_password(where, caplog):
    caplog.set_level("DEBUG", logger="reservable")
    backend = configure(where)
    assert SECRET not in repr(backend)
    for verb in (Video(id=1).reserve, Video(id=1).is_reserved, Video(id=1).release):
        with pytest.raises(BackendError) as broken:
            verb("download")
        assert SECRET not in everything(broken.value)
        assert broken.value.__cause__ is not None
    assert SECRET not in caplog.text


def test_a_wrong_password_is_not_shown(mariadb_url, redis_url):
    wrong = make_url(mariadb_url).set(username="nobody", password=SECRET)
    configure(wrong)
    with pytest.raises(BackendError) as broken:
        Video(id=1).reserve("download")
    assert SECRET not in everything(broken.value)
    configure(redis_url.replace("//", f"//nobody:{SECRET}@"))
    with pytest.raises(BackendError) as broken:
        Video(id=1).reserve("download")
    assert SECRET not in everything(broken.value)


@pytest.mark.parametrize("where", ["memory://", "redis://h", "sqlite:///x.sqlite", "mariadb+pymysql://h/d"])
def test_only_postgresql_can_be_told_to_notify(where):
    with pytest.raises(ConfigurationError, match="notify=True"):
        configure(where, notify=True)


@pytest.mark.parametrize("options", [{"create": "no"}, {"create": None}, {"notify": 1}])
def test_what_is_not_true_or_false_is_refused(options):
    with pytest.raises(ConfigurationError, match="True or False"):
        configure(None, **options)


def test_a_setting_that_the_driver_does_not_know_is_an_error_of_ours():
    with pytest.raises(BackendError, match="bogus"):
        list(configure("mariadb+pymysql://localhost/d?bogus=2").list())
