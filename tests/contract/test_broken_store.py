"""Stores that are down, gone, mute, forgetful or strict: an error of its own class, at once, and no secret in it."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import timedelta

import psycopg
import pymysql
import pytest
import redis
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from reservable.backends.base import Backend
from reservable.backends.database import AsyncDatabaseBackend
from reservable.backends.opening import open_backend
from reservable.backends.redis.connect import async_from_url
from reservable.errors import BackendError
from reservable.grants import Released
from reservable.testing import blocking, every_verb
from reservable.testing.store import extend_each
from tests.proxy import Proxy
from tests.server_process import free_port
from tests.servers import Server, ServerMissing, start_mariadb, start_postgresql, start_redis
from tests.stores import STORES, servers_are_required

SECRET = "S3CRET"
NAME = "videos:1:k"
MINUTE = timedelta(minutes=1)
AT_ONCE = 7
"""Seconds within which a store that fails must have said so."""

BLOCKING = {"redis": "redis", "postgresql": "postgresql+psycopg", "mariadb": "mariadb+pymysql"}
ASYNCIO = {
    "asyncio redis": "redis",
    "asyncpg": "postgresql+asyncpg",
    "asyncio psycopg": "postgresql+psycopg",
    "aiomysql": "mariadb+aiomysql",
    "asyncmy": "mariadb+asyncmy",
}
SCHEMES = BLOCKING | ASYNCIO
"""The ways to reach a store, and the scheme of each."""

DATABASES = {"redis": "0", "postgresql": "postgres", "mariadb": "test"}


def server_of(kind: str) -> str:
    """The server behind this way."""
    return SCHEMES[kind].partition("+")[0]


def address(kind: str, port: int, password: str = SECRET, query: str = "") -> str:
    return f"{SCHEMES[kind]}://worker:{password}@127.0.0.1:{port}/{DATABASES[server_of(kind)]}{query}"


def opened(kind: str, url: str, **arguments: object) -> Backend:
    if kind in BLOCKING:
        return open_backend(url)
    if server_of(kind) == "redis":
        return blocking(async_from_url(url))
    return blocking(AsyncDatabaseBackend(create_async_engine(url, connect_args=arguments)))


def started(kind: str) -> Server:
    """A server that lets `worker` in with the right password alone."""
    if kind == "redis":
        return start_redis("--user", "worker", "on", f">{SECRET}", "~*", "+@all")
    if kind == "postgresql":
        server = start_postgresql()
        with psycopg.connect(f"host=127.0.0.1 port={server.port} user=postgres", autocommit=True) as root:
            root.execute(f"CREATE USER worker SUPERUSER PASSWORD '{SECRET}'")
            hba = server.folder / "data" / "pg_hba.conf"
            hba.write_text("host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
            root.execute("SELECT pg_reload_conf()")
        return server
    mariadb = start_mariadb()
    with closing(pymysql.connect(host="127.0.0.1", port=mariadb.port, user="root")) as admin:
        admin.cursor().execute(f"CREATE USER worker@'%' IDENTIFIED BY '{SECRET}'")
        admin.cursor().execute("GRANT ALL ON test.* TO worker@'%'")
    return mariadb


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[str], Server]]:
    """A server of each kind for the tests here alone, running."""
    made: dict[str, Server] = {}

    def server(kind: str) -> Server:
        try:
            if kind not in made:
                made[kind] = started(kind)
        except ServerMissing as missing:
            if servers_are_required():
                pytest.fail(f"{STORES[kind].label} is required here: {missing}", pytrace=False)
            pytest.skip(f"{STORES[kind].label}: {missing}")
        return made[kind]

    yield server
    for one in made.values():
        one.close()


@pytest.fixture(params=SCHEMES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(kind: str, servers: Callable[[str], Server]) -> Server:
    return servers(server_of(kind))


@pytest.fixture
def connect(kind: str) -> Iterator[Callable[..., Backend]]:
    with ExitStack() as stack:
        yield lambda url, **arguments: stack.enter_context(closing(opened(kind, url, **arguments)))


@pytest.fixture
def backend(kind: str, server: Server, connect: Callable[[str], Backend]) -> Backend:
    """A backend that has been in use, on a store where nobody holds our name."""
    backend = connect(address(kind, server.port))
    for verb in every_verb(backend).values():
        verb()
    for held in list(backend.list()):
        backend.break_(held.name)
    return backend


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with Proxy(server.port) as proxy:
        yield proxy


@pytest.fixture
def through(kind: str, proxy: Proxy, backend: Backend, connect: Callable[[str], Backend]) -> Backend:
    """A backend whose one connection goes through the proxy and has been in use."""
    through = connect(address(kind, proxy.port))
    mine = "warm"
    through.acquire(NAME, mine, "o", MINUTE)
    through.extend(NAME, mine, MINUTE)
    through.release(NAME, mine)
    through.break_(NAME)
    assert through.holder(NAME) is None
    return through


@pytest.fixture(autouse=True)
def no_secret_in_the_logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    for record in caplog.records:
        assert SECRET not in record.getMessage()
        assert SECRET not in repr(vars(record))


def failure_of(call: Callable[[], object]) -> BackendError:
    """The error of a verb on a broken store: soon, with its cause, and without a secret anywhere."""
    asked = time.monotonic()
    with pytest.raises(BackendError) as caught:
        call()
    assert time.monotonic() - asked < AT_ONCE
    assert caught.value.__cause__ is not None
    assert_harmless(caught.value)
    return caught.value


def assert_harmless(error: BaseException) -> None:
    assert SECRET not in "".join(traceback.format_exception(error))
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        link = todo.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            assert SECRET not in f"{link} {link!r} {link.args}"
            todo += [link.__cause__, link.__context__]


def assert_broken(backend: Backend) -> None:
    for call in every_verb(backend).values():
        failure_of(call)
    assert SECRET not in repr(backend)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_server_that_goes_down_is_an_error_until_it_is_back(
    kind: str, server: Server, backend: Backend, connect: Callable[[str], Backend], how: str
) -> None:
    grant = backend.acquire(NAME, "mine", "o", timedelta(hours=1))
    assert grant is not None
    getattr(server, how)()
    assert_broken(backend)
    newcomer = connect(address(kind, server.port))
    assert_broken(newcomer)
    server.restart()
    for store in (backend, newcomer):
        held = store.holder(NAME)
        assert held is not None or not store.capabilities.durable
        assert store.acquire("videos:2:k", f"{store!r}"[:60], "o", MINUTE) is not None
        assert store.break_("videos:2:k") is True
    assert backend.release(NAME, "mine") is Released.YES


def test_one_call_gets_over_all_the_connections_that_a_restart_cut(server: Server, backend: Backend) -> None:
    with ThreadPoolExecutor(8) as pool:  # several connections, each of which would have to fail once
        list(pool.map(lambda _: backend.holder(NAME), range(400)))
    server.stop()
    server.restart()
    assert backend.acquire(NAME, "mine", "o", MINUTE) is not None
    assert backend.release(NAME, "mine") is Released.YES


def test_nobody_listens_where_the_store_should_be(kind: str, connect: Callable[[str], Backend]) -> None:
    assert_broken(connect(address(kind, free_port())))


def test_a_host_that_does_not_exist(kind: str, connect: Callable[[str], Backend]) -> None:
    url = make_url(address(kind, 1)).set(host="no-such-host.invalid").render_as_string(hide_password=False)
    assert_broken(connect(url))


def test_a_wrong_password_is_refused_and_not_repeated(
    kind: str, server: Server, connect: Callable[[str], Backend]
) -> None:
    backend = connect(address(kind, server.port, password=SECRET + "-but-wrong"))
    assert_broken(backend)


def test_an_acquire_whose_reply_was_lost_is_our_own_grant(
    through: Backend, proxy: Proxy, backend: Backend
) -> None:
    proxy.drop_next_reply()
    grant = through.acquire(NAME, "mine", "o", MINUTE)
    assert proxy.dropped == 1
    assert grant is not None
    held = backend.holder(NAME)
    assert held is not None
    assert held.fence == grant.fence
    assert through.release(NAME, "mine") is Released.YES
    assert backend.acquire(NAME, "theirs", "o", MINUTE) is not None


def test_a_first_free_name_whose_reply_was_lost_is_the_only_one_taken(
    through: Backend, proxy: Proxy, backend: Backend
) -> None:
    backend.acquire("videos:1:k", "theirs", "o", MINUTE)
    for names in (["videos:1:k", "videos:2:k", "videos:3:k"], ["videos:2:k"]):
        proxy.drop_next_reply()
        grant = through.acquire_first(names, "mine", "o", MINUTE)
        assert grant is not None
        assert grant.name == "videos:2:k"
        assert {held.name for held in backend.list()} == {"videos:1:k", "videos:2:k"}
        assert backend.release(grant.name, "mine") is Released.YES
    assert proxy.dropped == 2


def test_a_release_whose_reply_was_lost_says_that_it_does_not_know(
    through: Backend, proxy: Proxy, backend: Backend
) -> None:
    through.acquire(NAME, "mine", "o", MINUTE)
    proxy.drop_next_reply()
    assert through.release(NAME, "mine") in (Released.UNKNOWN, Released.YES)
    assert proxy.dropped == 1
    assert backend.holder(NAME) is None


def test_a_late_release_whose_reply_was_lost_leaves_the_next_holder_alone(
    through: Backend, proxy: Proxy, backend: Backend
) -> None:
    theirs = backend.acquire(NAME, "theirs", "o", MINUTE)
    proxy.drop_next_reply()
    assert through.release(NAME, "mine") is not Released.YES
    assert theirs is not None
    assert backend.release(NAME, "theirs") is Released.YES


def test_an_extension_whose_reply_was_lost_is_set(through: Backend, proxy: Proxy, backend: Backend) -> None:
    through.acquire(NAME, "mine", "o", MINUTE)
    proxy.drop_next_reply()
    until = through.extend(NAME, "mine", timedelta(hours=1))
    assert proxy.dropped == 1
    assert until is not None
    held = backend.holder(NAME)
    assert held is not None
    assert 3590 < held.remaining <= 3600
    assert abs(held.until.timestamp() - until / 1e6) < 0.01


def test_extensions_whose_reply_was_lost_are_set(through: Backend, proxy: Proxy, backend: Backend) -> None:
    held = [(f"videos:{n}:k", f"mine-{n}") for n in range(3)]
    for name, token in held:
        through.acquire(name, token, "o", MINUTE)
    proxy.drop_next_reply()
    ends = extend_each(through, [*held, ("videos:9:k", "mine")], timedelta(hours=1))
    assert proxy.dropped == 1
    assert set(ends) == {name for name, _ in held}
    assert all(3590 < holder.remaining <= 3600 for holder in backend.list())


def test_a_break_whose_reply_was_lost_never_breaks_the_next_grant(
    through: Backend, proxy: Proxy, backend: Backend
) -> None:
    backend.acquire(NAME, "theirs", "o", MINUTE)
    proxy.drop_next_reply()
    try:
        assert through.break_(NAME) is True
    except BackendError as error:
        assert_harmless(error)
    assert proxy.dropped == 1
    assert backend.holder(NAME) is None


def test_what_stays_without_any_answer_is_an_error_and_its_token_can_still_end_it(
    through: Backend, proxy: Proxy, backend: Backend
) -> None:
    proxy.drop_next_reply(100)
    failure_of(lambda: through.acquire(NAME, "mine", "o", timedelta(hours=1)))
    failure_of(lambda: through.extend(NAME, "mine", MINUTE))
    failure_of(lambda: through.release(NAME, "mine"))
    proxy.drop_next_reply(0)
    assert through.acquire(NAME, "mine", "o", MINUTE) is not None
    assert through.release(NAME, "mine") is Released.YES
    assert backend.holder(NAME) is None


def test_connections_that_are_cut_while_idle_are_no_trouble(
    through: Backend, proxy: Proxy, backend: Backend
) -> None:
    for _ in range(2):
        proxy.cut()
        assert through.acquire(NAME, "mine", "o", MINUTE) is not None
        proxy.cut()
        assert through.extend(NAME, "mine", MINUTE) is not None
        proxy.cut()
        assert through.holder(NAME) is not None
        assert len(list(through.list())) == 1
        proxy.cut()
        assert through.release(NAME, "mine") in (Released.UNKNOWN, Released.YES)


TIMEOUTS: dict[str, tuple[str, dict[str, object]]] = {
    "redis": ("?socket_timeout=0.5", {}),
    "asyncio redis": ("?socket_timeout=0.5", {}),
    "mariadb": ("?read_timeout=1&write_timeout=1&connect_timeout=1", {}),
    "asyncpg": ("", {"command_timeout": 0.5, "timeout": 1}),
    "asyncmy": ("", {"read_timeout": 1, "connect_timeout": 1}),
}
"""How a URL, or an engine's `connect_args`, bounds the wait for an answer. psycopg and aiomysql have no such setting."""


@pytest.mark.parametrize("kind", TIMEOUTS)
def test_a_frozen_server_is_waited_for_no_longer_than_configured(
    kind: str, server: Server, backend: Backend, connect: Callable[..., Backend]
) -> None:
    query, arguments = TIMEOUTS[kind]
    patient = connect(address(kind, server.port, query=query), **arguments)
    patient.acquire(NAME, "mine", "o", timedelta(hours=1))
    server.sigstop()
    try:
        failure_of(lambda: patient.acquire("videos:2:k", "mine", "o", MINUTE))
        failure_of(lambda: patient.extend(NAME, "mine", MINUTE))
        failure_of(lambda: patient.holder(NAME))
    finally:
        server.sigcont()
    assert patient.holder(NAME) is not None
    assert patient.release(NAME, "mine") is Released.YES


def test_a_server_that_takes_no_writes_is_broken_and_refuses_nobody(
    kind: str, server: Server, backend: Backend
) -> None:
    refuse, allow = {
        "redis": ("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"),
        "postgresql": (
            "ALTER ROLE worker SET default_transaction_read_only = on",
            "ALTER ROLE worker RESET default_transaction_read_only",
        ),
        "mariadb": ("SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0"),
    }[server_of(kind)]
    administer(server_of(kind), server, refuse)
    try:
        backend.close()  # settings are for connections that are made now
        failure_of(lambda: backend.acquire(NAME, "mine", "o", MINUTE))
        assert backend.holder(NAME) is None
    finally:
        administer(server_of(kind), server, allow)
    backend.close()
    assert backend.acquire(NAME, "mine", "o", MINUTE) is not None


def administer(kind: str, server: Server, command: str) -> None:
    if kind == "redis":
        with redis.Redis(port=server.port) as client:
            client.execute_command(command)
    elif kind == "postgresql":
        with psycopg.connect(f"host=127.0.0.1 port={server.port} user=postgres", autocommit=True) as root:
            root.execute(command.encode())
    else:
        with closing(pymysql.connect(host="127.0.0.1", port=server.port, user="root")) as admin:
            admin.cursor().execute(command)
