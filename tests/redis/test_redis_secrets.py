"""Passwords and tokens stay out of errors, causes, logs and reprs."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import timedelta

import pytest
import redis

from reservable.backends.redis import RedisBackend
from reservable.backends.redis.connect import from_url
from reservable.errors import BackendError, ConfigurationError
from tests.server_process import free_port
from tests.servers import Redis, start_redis

NAME = "videos:1:download"
MINUTE = timedelta(minutes=1)


def everything_said(error: BaseException) -> str:
    """The text of the error, of all causes and contexts, and the traceback that a log would hold."""
    said = ["".join(traceback.format_exception(error))]
    todo: list[BaseException | None] = [error]
    while todo:
        link = todo.pop()
        if link is not None:
            said.append(f"{link} {link!r} {link.args!r}")
            todo += [link.__cause__, link.__context__]
    return "\n".join(said)


BAD_URLS = [
    "redis://u:S3CRET@host:notaport/0",
    "redis://u:S3CRET/x@host:6379/0",
    "redis://u:S3CRET@host:99999/0",
    "redis://u:S3CRET@[half/0",
    "redis://u:S3CRET@host/zero",
    "redis://u:S3CRET@host/0?socket_timeout=soon",
    "redis://u:S3CRET@host/0?sokcet_timeout=5",
    "unix://u:S3CRET@",
    "redis+sentinel://u:S3CRET@a:26379,b:port/service/0",
    "redis+sentinel://u:S3CRET@a:26379/service?sokcet_timeout=5",
    "redis+cluster://u:S3CRET@a:6379/0?sokcet_timeout=5",
    "redis+sentinel://u:S3CRET@a:26379/",
    "redis+sentinel://u:S3CRET@a:26379/service/zero",
    "redis+cluster://u:S3CRET@a:6379,/0",
    "redis+cluster://u:S3CRET@a:6379/3",
    "redis+cluster://u:S3CRET@a:6379/0?db=3",
    "redi://u:S3CRET@host/0",
]


@pytest.mark.parametrize("bad", BAD_URLS)
def test_a_url_that_cannot_be_read_is_refused_without_repeating_it(bad: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        from_url(bad)
    assert "S3CRET" not in everything_said(caught.value).replace(bad, "")


def test_the_password_is_in_no_error_and_no_repr(
    own_server: Redis, connect: Callable[..., RedisBackend], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    nowhere = free_port()
    address = f"127.0.0.1:{own_server.port}"
    for url in (
        f"redis://u:S3CRET@{address}/0",
        f"redis://u:S3CRET@{address}/0?protocol=2",
        f"redis://u:S3CRET@127.0.0.1:{nowhere}/0",
        "redis://u:S3CRET@no-such-host.invalid/0",
        *(
            ["unix://u:S3CRET@/no/such/socket"] if redis.VERSION >= (6,) else []
        ),  # redis-py 5 leaks the socket
        f"redis+sentinel://u:S3CRET@127.0.0.1:{nowhere}/service/0?sentinel_password=S3CRET",
        f"redis+sentinel://u:S3CRET@{address}/service?sentinel_username=u&sentinel_password=S3CRET",
        f"redis+cluster://u:S3CRET@127.0.0.1:{nowhere}/0",
        f"redis+cluster://u:S3CRET@{address}/0",
    ):
        backend = connect(url)
        with pytest.raises(BackendError) as caught:
            backend.acquire(NAME, "TOPTOKEN", "o", MINUTE)
        place = getattr(backend, "backend", backend).place  # that of an asyncio backend is underneath
        said = everything_said(caught.value) + repr(backend) + repr(place) + caplog.text
        said = "\n".join(line for line in said.splitlines() if "acquire(NAME" not in line)
        assert "S3CRET" not in said
        assert "TOPTOKEN" not in said


def test_a_command_that_the_server_does_not_know_tells_no_token(
    connect: Callable[..., RedisBackend],
) -> None:
    with start_redis("--rename-command", "EVALSHA", "") as server:
        with pytest.raises(BackendError) as caught:
            connect(server.url).acquire(NAME, "TOPTOKEN", "o", MINUTE)
        assert "unknown command" in str(caught.value)
        assert "TOPTOKEN" not in f"{caught.value} {caught.value.__cause__!r}"
