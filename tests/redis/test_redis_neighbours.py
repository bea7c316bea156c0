"""Others in the same Redis: other prefixes, the user's own data, people with a keyboard; threads and forks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis

from reservable.backends.redis import RedisBackend
from reservable.errors import BackendError
from reservable.grants import Released
from tests.waiting import eventually

NAME = "videos:1:download"
MINUTE = timedelta(minutes=1)


def test_two_prefixes_never_meet_and_every_key_carries_its_own(
    url: str, client: redis.Redis, connect: Callable[..., RedisBackend]
) -> None:
    client.set("account:1", "the user's own")
    client.hset("account:2:x", "field", "the user's own")
    for prefix in ("a:", "b:"):
        backend = connect(url, prefix)
        assert backend.acquire("account:1", "T", "o", MINUTE)
        assert backend.acquire_first(["account:1", "account:2:x"], "U", "o", MINUTE)
        assert [holder.name for holder in backend.list("account:1")] == ["account:1"]
    assert sorted(client.keys()) == [
        b"a:account:1", b"a:account:2:x", b"account:1", b"account:2:x", b"b:account:1", b"b:account:2:x",
    ]  # fmt: skip
    assert client.get("account:1") == b"the user's own"


def test_data_of_the_user_is_in_the_way_and_is_never_touched(
    url: str, client: redis.Redis, connect: Callable[..., RedisBackend]
) -> None:
    client.set("text", "R2 D2")
    client.hset("hash", "field", "1")
    backend = connect(url)
    assert backend.acquire("text", "T", "o", MINUTE) is None
    with pytest.raises(BackendError):
        backend.acquire("hash", "T", "o", MINUTE)
    grant = backend.acquire_first(["text", "hash", "free"], "T", "o", MINUTE)
    assert grant is not None
    assert grant.name == "free"
    assert backend.break_("text") is backend.break_("hash") is False
    assert backend.holder("text") is backend.holder("hash") is None
    assert [holder.name for holder in backend.list()] == ["free"]
    assert (client.get("text"), client.hget("hash", "field")) == (b"R2 D2", b"1")


def test_a_key_deleted_by_hand_is_lost_and_can_be_had_again(
    url: str, client: redis.Redis, connect: Callable[..., RedisBackend]
) -> None:
    backend = connect(url)
    for delete in (lambda: client.delete(NAME), client.flushdb):  # a cache that is cleared does the latter
        assert backend.acquire(NAME, "A", "o", MINUTE)
        delete()
        assert backend.extend(NAME, "A", MINUTE) is None
        assert backend.release(NAME, "A") is Released.NOT_HELD
    assert backend.acquire(NAME, "B", "o", MINUTE)


def test_scripts_that_the_server_forgot_are_sent_again(
    url: str, client: redis.Redis, connect: Callable[..., RedisBackend]
) -> None:
    backend = connect(url)
    verbs: list[Callable[[], Any]] = [
        lambda: backend.acquire(NAME, "A", "o", MINUTE),
        lambda: backend.acquire_first([NAME], "A", "o", MINUTE),
        lambda: backend.extend(NAME, "A", MINUTE),
        lambda: backend.holder(NAME),
        lambda: backend.release(NAME, "A") is Released.YES,
        lambda: backend.break_(NAME) is False,
    ]
    for verb in verbs:
        client.script_flush()
        assert verb()


def test_threads_share_a_backend_and_one_wins(url: str, connect: Callable[..., RedisBackend]) -> None:
    backend = connect(url)
    barrier = threading.Barrier(8)
    won: list[int] = []

    def race(number: int) -> None:
        for turn in range(50):
            barrier.wait()
            if backend.acquire(f"n{turn}", f"T{number}", "o", MINUTE):
                won.append(turn)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(50))


@pytest.mark.parametrize("colour", ["blocking"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_connections_of_its_own(
    url: str, client: redis.Redis, connect: Callable[..., RedisBackend]
) -> None:
    backend = connect(url)
    backend.acquire("parent", "P", "o", MINUTE)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for turn in range(200):
                granted = backend.acquire("child", f"C{turn}", "child", MINUTE)
                released = backend.release("child", f"C{turn}")
                if granted is None or granted.name != "child" or released is not Released.YES:
                    break
            else:
                status = 0
        finally:
            os._exit(status)
    for turn in range(200):
        grant = backend.acquire("own", f"P{turn}", "parent", MINUTE)
        assert grant is not None
        assert backend.release("own", f"P{turn}") is Released.YES
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert backend.release("parent", "P") is Released.YES


def test_closing_ends_our_connections_and_not_the_clients(url: str) -> None:
    with redis.Redis.from_url(url, client_name="given") as client:
        backend = RedisBackend(client)
        backend.acquire(NAME, "A", "o", MINUTE)
        client.ping()

        def open_now() -> int:
            return sum(one["name"] == "given" for one in client.client_list())

        assert open_now() == 2
        backend.close()
        eventually(lambda: open_now() == 1)
        assert backend.release(NAME, "A") is Released.YES  # and it opens them again when it must
        backend.close()
