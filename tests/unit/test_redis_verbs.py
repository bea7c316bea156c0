"""The verbs as plans: what they ask, what they make of the answers, and what they do when one is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import fakeredis
import pytest
import redis
from redis.crc import key_slot

from reservable.backends.redis import RedisBackend
from reservable.backends.redis.cluster import ClusterWire
from reservable.backends.redis.connect import from_url
from reservable.backends.redis.failures import broken
from reservable.backends.redis.steps import Call, Look, Scan
from reservable.backends.redis.verbs import RedisVerbs, glob, milliseconds, shares_slot
from reservable.backends.redis.wires import PoolWire
from reservable.errors import BackendError, ConfigurationError
from reservable.grants import Grant, Released
from reservable.plans import Pause, Plan, run
from reservable.retrying import LostReply

MINUTE = timedelta(minutes=1)
LOST = LostReply(BackendError("lost"))


def answered(*answers: Any) -> tuple[Callable[[Any], Any], list[Any]]:
    """A performer that gives these answers (or raises them) and the steps that it was asked for, without pauses."""
    left: Iterator[Any] = iter(answers)
    steps: list[Any] = []

    def perform(step: Any) -> Any:
        if isinstance(step, Pause):
            return None
        steps.append(step)
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return perform, steps


def told(plan: Plan[Any], *answers: Any) -> Any:
    return run(plan, answered(*answers)[0])


@pytest.fixture
def backend() -> RedisBackend:
    return RedisBackend(fakeredis.FakeRedis(server=fakeredis.FakeServer()), "shop:")


@pytest.mark.parametrize(
    ("lifetime", "expected"),
    [
        (timedelta(microseconds=400), 1),
        (timedelta(microseconds=1000), 1),
        (timedelta(microseconds=1001), 2),
        (timedelta(seconds=1), 1000),
        (timedelta(days=36525), 3_155_760_000_000),
    ],
)
def test_lifetimes_are_rounded_up_to_whole_milliseconds(lifetime: timedelta, expected: int) -> None:
    assert milliseconds(lifetime) == expected


def test_acquire_asks_one_script_for_one_key() -> None:
    perform, steps = answered(1_000_000)
    grant = run(RedisVerbs("shop:").acquire("videos:1:x", "T", "host", MINUTE), perform)
    assert grant == Grant("videos:1:x", "T", 1_000_000, 1_000_000, 61_000_000)
    assert [(step.script.name, step.keys) for step in steps] == [("acquire", (b"shop:videos:1:x",))]


def test_acquire_refused_is_none_and_standing_grant_keeps_its_fence_and_its_end() -> None:
    verbs = RedisVerbs()
    assert told(verbs.acquire("a", "T", "o", MINUTE), None) is None
    assert told(verbs.acquire("a", "T", "o", MINUTE), [b"900000", 1_000_000, 500]) == Grant(
        "a", "T", 900_000, 900_000, 1_500_000
    )


def test_acquire_whose_reply_was_lost_asks_again_with_the_same_token() -> None:
    perform, steps = answered(LOST, [b"5", 10, 3])
    grant = run(RedisVerbs().acquire("a", "T", "o", MINUTE), perform)
    assert grant is not None
    assert (grant.fence, grant.until) == (5, 3000)
    assert steps[0] == steps[1]


def test_acquire_without_any_answer_tries_to_undo_and_is_a_backend_error() -> None:
    perform, steps = answered(LOST, LOST, BackendError("refused"), LOST)
    with pytest.raises(BackendError, match="refused"):
        run(RedisVerbs().acquire("a", "T", "o", MINUTE), perform)
    assert [step.script.name for step in steps] == ["acquire"] * 3 + ["release"]


def test_a_server_that_cannot_be_reached_is_asked_once() -> None:
    perform, steps = answered(BackendError("refused"))
    with pytest.raises(BackendError):
        run(RedisVerbs().acquire("a", "T", "o", MINUTE), perform)
    assert len(steps) == 1


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([1], Released.YES),
        ([0], Released.NOT_HELD),
        ([-1], Released.BY_ANOTHER),
        ([LOST, 1], Released.YES),
        ([LOST, 0], Released.UNKNOWN),
        ([LOST, LOST, -1], Released.UNKNOWN),
    ],
)
def test_release_says_what_it_knows(answers: list[Any], expected: Released) -> None:
    assert told(RedisVerbs().release("a", "T"), *answers) is expected


def test_extend_whose_reply_was_lost_sets_again() -> None:
    assert told(RedisVerbs().extend("a", "T", MINUTE), LOST, 7) == 60_000_007
    assert told(RedisVerbs().extend("a", "T", MINUTE), LOST, None) is None


def test_break_is_never_asked_again_for_it_might_hit_the_next_holder() -> None:
    perform, steps = answered(LOST)
    with pytest.raises(BackendError):
        run(RedisVerbs().break_("a"), perform)
    assert len(steps) == 1


def test_acquire_first_of_no_names_asks_nobody() -> None:
    assert told(RedisVerbs().acquire_first([], "T", "o", MINUTE)) is None


def test_acquire_first_on_a_cluster_looks_first_and_tries_in_order_what_looked_free() -> None:
    perform, steps = answered([b"R1 other 1 o", None, None], None, 42)
    grant = run(RedisVerbs(cluster=True).acquire_first(["a", "b", "c"], "T", "o", MINUTE), perform)
    assert grant is not None
    assert grant.name == "c"
    assert steps[0] == Look((b"a", b"b", b"c"))
    assert [step.keys for step in steps[1:]] == [(b"b",), (b"c",)]


def test_acquire_first_on_a_cluster_finds_what_the_token_holds_already() -> None:
    perform, _ = answered([None, b"R1 T 9 o"], [b"9", 20, 1])
    grant = run(RedisVerbs(cluster=True).acquire_first(["a", "b"], "T", "o", MINUTE), perform)
    assert grant is not None
    assert (grant.name, grant.fence) == ("b", 9)


def test_a_prefix_with_a_hash_tag_makes_one_call_on_a_cluster() -> None:
    perform, steps = answered([2, 7, 7, 60_000])
    grant = run(RedisVerbs("{shop}:", cluster=True).acquire_first(["a", "b"], "T", "o", MINUTE), perform)
    assert grant is not None
    assert grant.name == "b"
    assert steps[0].keys == (b"{shop}:a", b"{shop}:b")


@pytest.mark.parametrize("prefix", ["", "shop:", "{}", "}{", "{", "}x{", "{}{a}", "{a}:", "a{b}{c}", "{{a}"])
def test_one_slot_is_claimed_just_for_prefixes_that_have_one(prefix: str) -> None:
    slots = {key_slot(f"{prefix}videos:{i}:x".encode()) for i in range(50)}
    assert shares_slot(prefix) == (len(slots) == 1)


@pytest.mark.parametrize(
    ("prefix", "pattern", "expected"),
    [
        ("", "*", b"*"),
        ("shop:", "videos:*", b"shop:videos:*"),
        ("a*[b]?:", "x", rb"a\*\[b\]\?:x"),
        ("", "videos:[0-9]", b"videos:*"),
    ],
)
def test_the_glob_is_literal_in_the_prefix_and_wide_in_the_pattern(
    prefix: str, pattern: str, expected: bytes
) -> None:
    assert glob(prefix, pattern) == expected


def test_a_page_never_repeats_a_key_that_the_server_gave_twice() -> None:
    verbs = RedisVerbs()
    found = [5, b"R1 t 1 o", 1000]
    perform, steps = answered(([b"a"], 17), found, ([b"a", b"b"], None), found)
    holders, after = run(verbs.page("*", None), perform)
    assert [holder.name for holder in holders] == ["a"]
    holders, after = run(verbs.page("*", after), perform)
    assert [holder.name for holder in holders] == ["b"]
    assert after is None
    assert steps[2] == Scan(17, b"*")


def test_no_token_in_the_text_of_a_step() -> None:
    perform, steps = answered(1)
    run(RedisVerbs().acquire("a", "TOPSECRET", "o", MINUTE), perform)
    assert isinstance(steps[0], Call)
    assert "TOPSECRET" not in f"{steps[0]!r} {steps[0]}"


def test_many_are_extended_by_one_call_for_a_thousand() -> None:
    perform, steps = answered([1_000_000, *[1] * 999, 0], [2_000_000, 1])
    held = [(f"videos:{n}:x", f"T{n}") for n in range(1001)]
    ends = run(RedisVerbs("shop:").extend_many(held, MINUTE), perform)
    assert [len(step.keys) for step in steps] == [1000, 1]
    assert (steps[1].keys, steps[1].args) == ((b"shop:videos:1000:x",), (60_000, b"R1 T1000 "))
    assert ends == {name: 61_000_000 for name, _ in held[:999]} | {"videos:1000:x": 62_000_000}


def test_on_a_cluster_many_are_extended_one_by_one_unless_they_share_a_slot() -> None:
    held = [("a", "T"), ("b", "U"), ("c", "V")]
    perform, steps = answered(1_000_000, None, LOST, 3_000_000)
    ends = run(RedisVerbs(cluster=True).extend_many(held, MINUTE), perform)
    assert ends == {"a": 61_000_000, "c": 63_000_000}
    assert {step.script.name for step in steps} == {"extend"}
    perform, steps = answered([5, 1, 1, 0])
    assert set(run(RedisVerbs("{x}:", cluster=True).extend_many(held, MINUTE), perform)) == {"a", "b"}


def test_grant_refuse_extend_release(backend: RedisBackend) -> None:
    grant = backend.acquire("videos:1:x", "T", "Jürgen\n of host", MINUTE)
    assert grant is not None
    assert backend.acquire("videos:1:x", "other", "o", MINUTE) is None
    again = backend.acquire("videos:1:x", "T", "o", MINUTE)
    assert again is not None
    assert again.fence == grant.fence
    holder = backend.holder("videos:1:x")
    assert holder is not None
    assert (holder.owner, holder.fence) == ("Jürgen\n of host", grant.fence)
    assert 59 < holder.remaining <= 60
    extended = backend.extend("videos:1:x", "T", timedelta(hours=1))
    assert extended is not None
    assert extended > grant.until
    assert backend.extend("videos:1:x", "other", MINUTE) is None
    assert backend.release("videos:1:x", "other") is Released.BY_ANOTHER
    assert backend.release("videos:1:x", "T") is Released.YES
    assert backend.release("videos:1:x", "T") is Released.NOT_HELD
    assert backend.holder("videos:1:x") is None
    assert backend.extend("videos:1:x", "T", MINUTE) is None


def test_acquire_first_takes_the_first_free_name_and_is_idempotent(backend: RedisBackend) -> None:
    names = [f"videos:{i}:x" for i in range(9000)]
    for name in names[:2]:
        assert backend.acquire(name, "other", "o", MINUTE)
    first = backend.acquire_first(names, "T", "o", MINUTE)
    assert first is not None
    assert first.name == names[2]
    backend.release(names[0], "other")
    again = backend.acquire_first(names, "T", "o", MINUTE)
    assert again is not None
    assert (again.name, again.fence) == (first.name, first.fence)


def test_names_are_listed_without_prefix_and_other_prefixes_not_at_all() -> None:
    server = fakeredis.FakeServer()
    one, two = (RedisBackend(fakeredis.FakeRedis(server=server), prefix) for prefix in ("a:", "ab:"))
    one.acquire("videos:1:x", "T", "o", MINUTE)
    two.acquire("videos:2:x", "T", "o", MINUTE)
    assert [holder.name for holder in one.list()] == ["videos:1:x"]
    assert [holder.name for holder in two.list("videos:[0-9]:?")] == ["videos:2:x"]
    assert list(two.list("videos:[!2]:?")) == []


def test_other_kinds_of_client_are_refused() -> None:
    class RedisCache:
        """Looks like a cache of a web framework: pickles what it stores."""

        def get(self, key: str) -> object: ...

        def set(self, key: str, value: object) -> None: ...

    plain = fakeredis.FakeRedis()
    for client in (RedisCache(), fakeredis.FakeAsyncRedis(), plain.pipeline(), None, "redis://", redis.Redis):
        with pytest.raises(ConfigurationError):
            RedisBackend(client)


def test_a_prefix_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        RedisBackend(fakeredis.FakeRedis(), "x" * 65)


def test_a_pool_that_is_not_ours_gets_its_connections_back() -> None:
    class OwnPool(redis.ConnectionPool):
        pass

    kind = fakeredis.FakeRedis().connection_pool.connection_class
    pool = OwnPool(connection_class=kind, max_connections=1)
    client = redis.Redis(connection_pool=pool)
    backend = RedisBackend(client)
    wire = backend._wire
    assert isinstance(wire, PoolWire)
    assert wire._pool is pool
    assert backend.acquire("a", "T", "o", MINUTE)
    backend.close()
    assert client.ping()


def test_the_password_is_taken_out_of_the_text_and_of_the_causes() -> None:
    inner = ValueError("S3CRET@host is no port")
    error = redis.ConnectionError("cannot connect to u:S3CRET@host")
    error.__context__ = inner
    failure = broken(error, {"S3CRET"})
    assert isinstance(failure.__cause__, redis.ConnectionError)
    assert "S3CRET" not in f"{failure} {failure.__cause__!r} {failure.__cause__.__context__}"


def test_the_arguments_that_a_server_echoes_are_cut_off() -> None:
    error = redis.ResponseError("unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `u`, `PW`")
    assert "PW" not in f"{broken(error, ())} {broken(error, ()).__cause__!r}"


def test_a_harmless_error_is_the_cause_itself() -> None:
    error = redis.ConnectionError("Error 111 connecting to localhost:1")
    assert broken(error, {"S3CRET"}).__cause__ is error


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis://:p%40ss@host:1234/5",
        "rediss://host/0?ssl_cert_reqs=none",
        "unix:///run/redis.sock",
        "redis+sentinel://a,b:2/service",
        "rediss+sentinel://u:p@a/service/3?ssl_ca_certs=/ca.pem",
    ],
)
def test_a_url_waits_five_seconds_at_most_and_tries_once(url: str) -> None:
    wire = from_url(url)._wire
    assert isinstance(wire, PoolWire)
    settings = wire._pool.connection_kwargs
    assert settings["socket_timeout"] == settings.get("socket_connect_timeout", 5) == 5
    assert settings["retry"]._retries == 0
    assert ("SSL" in wire._pool.connection_class.__name__) == url.startswith("rediss")


def test_the_url_may_say_how_long_to_wait() -> None:
    wire = from_url("redis://:p%40ss@host:1234/5?socket_timeout=0.5&max_connections=7")._wire
    assert isinstance(wire, PoolWire)
    settings = wire._pool.connection_kwargs
    assert (settings["password"], settings["host"], settings["port"], settings["db"]) == (
        "p@ss",
        "host",
        1234,
        5,
    )
    assert (settings["socket_timeout"], wire._pool.max_connections) == (0.5, 7)


@pytest.mark.parametrize("url", ["rediss+cluster://u:p@a,b:2/0", "redis+cluster://a"])
def test_the_url_of_a_cluster_connects_nowhere_yet(url: str) -> None:
    assert isinstance(from_url(url)._wire, ClusterWire)


def test_a_client_s_pool_is_copied_without_its_patience() -> None:
    with redis.Redis("host", 1234, db=5, password="p", max_connections=9) as client:
        wire = RedisBackend(client)._wire
    assert isinstance(wire, PoolWire)
    settings = wire._pool.connection_kwargs
    assert wire._pool is not client.connection_pool
    assert (settings["host"], settings["db"], settings["password"]) == ("host", 5, "p")
    assert wire._pool.max_connections == 9
    assert settings["retry"]._retries == 0


def test_a_blocking_pool_stays_one() -> None:
    pool = redis.BlockingConnectionPool(max_connections=3, timeout=1)
    wire = RedisBackend(redis.Redis(connection_pool=pool))._wire
    assert isinstance(wire, PoolWire)
    assert isinstance(wire._pool, redis.BlockingConnectionPool)
    assert (wire._pool.max_connections, wire._pool.timeout) == (3, 1)
