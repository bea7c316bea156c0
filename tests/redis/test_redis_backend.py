"""The Redis backend on a real server: every verb, with every kind of client."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
import redis

from reservable.backends.redis import RedisBackend
from reservable.backends.redis.connect import from_url
from reservable.grants import Released, utc
from tests.servers import Redis, start_redis
from tests.waiting import eventually

NAME = "videos:1:download"
MINUTE = timedelta(minutes=1)
SHORT = timedelta(milliseconds=50)


def over(backend: RedisBackend, name: str = NAME) -> None:
    eventually(lambda: backend.holder(name) is None)


@pytest.mark.parametrize("decode", [False, True])
@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_every_kind_of_client_gives_the_same_answers(
    url: str, decode: bool, protocol: int, encoding: str
) -> None:
    with redis.Redis.from_url(url, decode_responses=decode, protocol=protocol, encoding=encoding) as client:
        backend = RedisBackend(client, "a:")
        other = from_url(url, "a:")
        owner = "Jürgen 行 \n\0:1"
        grant = backend.acquire(NAME, "T", owner, MINUTE)
        assert grant is not None
        again = other.acquire(NAME, "T", owner, MINUTE)
        assert again is not None
        assert (again.fence, again.since) == (grant.fence, grant.since)
        assert other.acquire(NAME, "else", "x", MINUTE) is None
        first = backend.acquire_first([NAME, "b", "c"], "U", owner, MINUTE)
        assert first is not None
        assert first.name == "b"
        held = sorted(backend.list(), key=lambda holder: holder.name)
        assert [(holder.name, holder.owner) for holder in held] == [("b", owner), (NAME, owner)]
        assert [holder.name for holder in other.list("videos:*")] == [NAME]
        assert other.extend(NAME, "T", timedelta(hours=1)) is not None
        assert backend.release(NAME, "else") is Released.BY_ANOTHER
        assert other.release(NAME, "T") is Released.YES
        assert backend.break_("b") is True
        assert backend.break_("b") is False
        assert list(backend.list()) == []
        assert (backend.prune(), backend.capabilities.shared) == (0, True)
        backend.close()
        other.close()


def test_a_lifetime_below_a_millisecond_is_granted_and_extended(
    url: str, connect: Callable[..., RedisBackend]
) -> None:
    backend = connect(url)
    tiny = timedelta(microseconds=400)
    assert backend.acquire(NAME, "T", "o", tiny) is not None
    over(backend)
    assert backend.acquire(NAME, "T", "o", MINUTE) is not None
    assert backend.extend(NAME, "T", tiny) is not None
    over(backend)


@pytest.mark.parametrize("seconds", [0.02, 0.0305, 0.1])
def test_a_reservation_is_never_shorter_than_asked(
    url: str, connect: Callable[..., RedisBackend], seconds: float
) -> None:
    backend = connect(url)
    for turn in range(10):
        grant = backend.acquire(NAME, f"A{turn}", "o", timedelta(seconds=seconds))
        assert grant is not None
        taken = eventually(partial(backend.acquire, NAME, f"B{turn}", "o", MINUTE), every=0)
        assert taken is not None
        assert taken.since - grant.since >= seconds * 1_000_000
        assert taken.since >= grant.until
        backend.release(NAME, f"B{turn}")


def test_a_hundred_years_are_stored_as_they_are(url: str, connect: Callable[..., RedisBackend]) -> None:
    backend = connect(url)
    grant = backend.acquire(NAME, "T", "o", timedelta(days=36525))
    holder = backend.holder(NAME)
    assert grant is not None
    assert holder is not None
    assert grant.until - grant.since == 36525 * 86400 * 1_000_000
    assert holder.remaining == pytest.approx(36525 * 86400, abs=5)


def test_a_late_release_leaves_the_next_holder_alone(url: str, connect: Callable[..., RedisBackend]) -> None:
    backend = connect(url)
    backend.acquire(NAME, "A", "o", SHORT)
    over(backend)
    assert backend.release(NAME, "A") is Released.NOT_HELD
    assert backend.acquire(NAME, "B", "o", MINUTE)
    assert backend.release(NAME, "A") is Released.BY_ANOTHER
    assert backend.acquire(NAME, "C", "o", MINUTE) is None


def test_what_is_over_is_never_extended_back_to_life(url: str, connect: Callable[..., RedisBackend]) -> None:
    backend = connect(url)
    backend.acquire(NAME, "A", "o", SHORT)
    over(backend)
    assert backend.extend(NAME, "A", MINUTE) is None
    assert backend.holder(NAME) is None
    assert backend.acquire(NAME, "B", "o", MINUTE)
    assert backend.extend(NAME, "A", MINUTE) is None
    backend.release(NAME, "B")
    assert backend.extend(NAME, "A", MINUTE) is None
    assert backend.holder(NAME) is None


def test_a_bystander_sees_who_holds_it_and_how_long_still(
    url: str, connect: Callable[..., RedisBackend]
) -> None:
    grant = connect(url).acquire(NAME, "A", "host:1", MINUTE)
    holder = connect(url).holder(NAME)
    assert grant is not None
    assert holder is not None
    assert (holder.owner, holder.fence) == ("host:1", grant.fence)
    assert 59 < holder.remaining <= 60
    assert connect(url).release(NAME, "guessed") is Released.BY_ANOTHER


def test_fences_only_grow(url: str, connect: Callable[..., RedisBackend]) -> None:
    backend = connect(url)
    fences = []
    for turn in range(200):
        grant = backend.acquire(NAME, str(turn), "o", MINUTE)
        assert grant is not None
        fences.append(grant.fence)
        backend.release(NAME, str(turn))
    assert fences == sorted(set(fences))


def test_a_token_handed_to_another_connection_is_all_it_needs(
    url: str, connect: Callable[..., RedisBackend]
) -> None:
    connect(url).acquire(NAME, "A", "o", MINUTE)
    worker = connect(url)
    for wrong in ("", "a", "A ", "R1 A", "A\n", "\ud800"):
        assert worker.extend(NAME, wrong, MINUTE) is None
        assert worker.release(NAME, wrong) is Released.BY_ANOTHER
    assert worker.extend(NAME, "A", MINUTE) is not None
    assert worker.release(NAME, "A") is Released.YES


def test_ten_thousand_names_and_more_go_in_one_call(url: str, connect: Callable[..., RedisBackend]) -> None:
    backend = connect(url, "a:")
    names = [f"videos:{i}:download" for i in range(30_000)]
    with redis.Redis.from_url(url) as client:
        client.mset(dict.fromkeys((f"a:{name}" for name in names[:-1]), "R1 other 1 o"))
    before = time.monotonic()
    grant = backend.acquire_first(names, "A", "o", MINUTE)
    assert grant is not None
    assert grant.name == names[-1]
    assert time.monotonic() - before < 2
    assert backend.acquire_first(names, "B", "o", MINUTE) is None
    assert len(list(backend.list("videos:2999?:*"))) == 10


def test_a_grant_is_one_command_that_sets_value_and_expiry_together(
    url: str, client: redis.Redis, connect: Callable[..., RedisBackend]
) -> None:
    backend = connect(url, "{Test}:")
    backend.acquire(NAME, "warm", "o", MINUTE)
    backend.release(NAME, "warm")
    with client.monitor() as monitor:
        backend.acquire(NAME, "T", "o", MINUTE)
        client.ping()
        heard: list[str] = []
        while not heard or heard[-1] != "PING":
            heard.append(monitor.next_command()["command"])
    sent = [command for command in heard if command.startswith("EVALSHA")]
    written = [command for command in heard if command.split()[0] in {"SET", "PEXPIRE", "EXPIRE", "PSETEX"}]
    assert len(sent) == 1
    assert len(written) == 1
    assert written[0].startswith("SET {Test}:videos:1:download")
    assert written[0].endswith("NX PX 60000")
    connecting = {"HELLO", "SELECT", "CLIENT"}
    assert {command.split()[0] for command in heard} - connecting == {"EVALSHA", "TIME", "SET", "PING"}


def test_a_unix_socket(own_server: Redis, connect: Callable[..., RedisBackend]) -> None:
    with start_redis("--unixsocket", "socket") as server:
        backend = connect(f"unix://{server.folder}/socket?db=3")
        assert backend.acquire(NAME, "A", "o", MINUTE)
        with redis.Redis(unix_socket_path=f"{server.folder}/socket", db=3) as client:
            assert client.exists(NAME)
            given = RedisBackend(client)
            assert given.release(NAME, "A") is Released.YES
            given.close()


def test_a_holders_end_is_the_keys_own(
    url: str, client: redis.Redis, connect: Callable[..., RedisBackend]
) -> None:
    backend = connect(url)
    assert backend.acquire(NAME, "T", "o", MINUTE)
    for _ in range(50):
        holder = backend.holder(NAME)
        assert holder is not None
        assert round(holder.until.timestamp() * 1000) == client.pexpiretime(NAME)


def test_a_server_without_pexpiretime_tells_the_end_by_what_is_left(
    connect: Callable[..., RedisBackend],
) -> None:
    with start_redis("--rename-command", "PEXPIRETIME", "") as server:
        backend = connect(server.url)
        grant = backend.acquire(NAME, "T", "o", MINUTE)
        holder = backend.holder(NAME)
        assert grant is not None
        assert holder is not None
        assert abs(holder.until - utc(grant.until)) < timedelta(milliseconds=20)
        assert holder.remaining <= 60.001
        [listed] = backend.list()
        assert abs(listed.until - holder.until) < timedelta(milliseconds=20)
