"""Who is granted what: one holder a name, the same answer to the same token, names that stay apart."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pytest

from reservable.backends.base import Backend
from reservable.grants import Grant, Released, utc
from reservable.testing.store import MINUTE, NAME, OWNER, RESOLUTION, StoreFixtures, is_free, taken, token

MANY = 3000

APART = [
    "videos:1:job",
    "videos:1:Job",
    "videos:1:JOB",
    "Videos:1:job",
    "videos:1:jo",
    "videos:1:job.",
    "videos:1:job%20",
    "videos:1:job%2520",
    "videos:1:job_",
    "videos:1:jobs",
    "videos:11:job",
    "videos:1,1:job",
    "videos:1,:job",
    "videos:1:%C3%A9",
    "videos:1:e%CC%81",
    "videos:1:e",
    "videos:1:ss",
    "videos:1:%C3%9F",
    "videos:1:%00",
    "videos:1:~",
    "videos:1:-",
    "videos-1-job",
    "job",
    "1",
    "0",
    "01",
]
"""Names that a careless store takes for one another: by case, collation, trailing text, patterns, unescaping."""

LONG = [f"{'m' * 255}:{'1' * 255}:{'k' * 254}{last}" for last in "abA"]
"""Three parts of 255 bytes each, which differ in the last byte alone."""


class Granting(StoreFixtures):
    """`acquire` and `acquire_first`."""

    def test_a_grant_says_what_it_is(self, backend: Backend) -> None:
        mine = token()
        grant = taken(backend, by=mine)
        assert (grant.name, grant.token) == (NAME, mine)
        assert_lasts(grant, MINUTE)
        assert grant.fence > 0
        assert mine not in repr(grant)

    def test_one_holder_at_a_time(self, backend: Backend, second: Backend) -> None:
        grant = taken(backend)
        assert not is_free(backend)
        assert not is_free(second)
        assert backend.release(NAME, grant.token) is Released.YES
        assert is_free(second)

    def test_the_holder_who_asks_again_gets_the_standing_grant(
        self, backend: Backend, second: Backend
    ) -> None:
        grant = taken(backend)
        for store in (backend, second, backend):
            again = store.acquire(NAME, grant.token, "another label", timedelta(hours=9))
            assert_same(again, grant)
        assert not is_free(second)

    def test_tokens_that_look_alike_are_no_owner(self, backend: Backend) -> None:
        grant = taken(backend, by="5ecret5ecret")
        for other in ("5ecret", "5ecret5ecret5", "5ECRET5ECRET", "5ecret5ecre_", "%", "*"):
            assert backend.acquire(NAME, other, OWNER, MINUTE) is None
            assert backend.extend(NAME, other, MINUTE) is None
            assert backend.release(NAME, other) is Released.BY_ANOTHER
        assert backend.release(NAME, grant.token) is Released.YES

    @pytest.mark.parametrize("days", [30, 36_500])
    def test_a_long_lifetime_is_stored_right(self, backend: Backend, days: int) -> None:
        lifetime = timedelta(days=days)
        grant = taken(backend, lifetime=lifetime)
        assert_lasts(grant, lifetime)
        held = backend.holder(NAME)
        assert held is not None
        assert lifetime - timedelta(minutes=1) < held.until - held.since <= lifetime + RESOLUTION
        assert lifetime.total_seconds() - 60 < held.remaining <= lifetime.total_seconds() + 0.001
        assert not is_free(backend)
        until = backend.extend(NAME, grant.token, lifetime)
        assert until is not None
        assert until >= grant.until

    def test_names_that_look_alike_are_apart(self, backend: Backend, second: Backend) -> None:
        grants = {name: taken(backend, name) for name in APART}
        assert {held.name for held in backend.list()} == set(APART)
        for name, grant in grants.items():
            held = second.holder(name)
            assert held is not None
            assert (held.name, held.fence) == (name, grant.fence)
        for name in APART:
            assert second.release(name, grants.pop(name).token) is Released.YES
            assert second.holder(name) is None
            assert {held.name for held in backend.list()} == set(grants)

    def test_long_names_are_never_cut(self, backend: Backend, with_prefix: Callable[[str], Backend]) -> None:
        for store in (backend, with_prefix("p" * 63 + ":")):
            for name in LONG:
                assert taken(store, name).name == name
            assert sorted(held.name for held in store.list("m*")) == sorted(LONG)

    def test_the_first_free_name_in_the_order_asked_for(self, backend: Backend) -> None:
        names = ["videos:3:k", "videos:1:k", "videos:2:k"]
        taken(backend, "videos:3:k")
        first = backend.acquire_first(names, token(), OWNER, MINUTE)
        assert first is not None
        assert first.name == "videos:1:k"
        assert not is_free(backend, "videos:1:k")
        assert is_free(backend, "videos:2:k")
        assert_lasts(first, MINUTE)
        assert backend.release(first.name, first.token) is Released.YES

    def test_none_of_the_names_is_free(self, backend: Backend, second: Backend) -> None:
        names = ["videos:1:k", "videos:2:k"]
        for name in names:
            taken(backend, name)
        assert second.acquire_first(names, token(), OWNER, MINUTE) is None
        assert second.acquire_first(names[:1], token(), OWNER, MINUTE) is None
        assert second.acquire_first([], token(), OWNER, MINUTE) is None

    def test_the_first_free_name_asked_for_again_is_the_standing_grant(
        self, backend: Backend, second: Backend
    ) -> None:
        names = ["videos:1:k", "videos:2:k", "videos:3:k"]
        blocking = taken(backend, "videos:1:k")
        mine = token()
        grant = backend.acquire_first(names, mine, OWNER, MINUTE)
        assert grant is not None
        assert grant.name == "videos:2:k"
        backend.release("videos:1:k", blocking.token)
        # An earlier name is free by now; the answer stays what it was, and nothing else is taken.
        assert_same(second.acquire_first(names, mine, OWNER, timedelta(hours=9)), grant)
        assert_same(backend.acquire("videos:2:k", mine, OWNER, MINUTE), grant)
        assert_same(second.acquire_first(["videos:2:k"], mine, OWNER, MINUTE), grant)
        assert [held.name for held in backend.list()] == ["videos:2:k"]

    def test_the_last_of_thousands_of_names_is_found(self, backend: Backend) -> None:
        names = [f"videos:{number}:k" for number in range(MANY)]
        fill(backend, names[:-1])
        mine = token()
        grant = backend.acquire_first(names, mine, OWNER, MINUTE)
        assert grant is not None
        assert grant.name == names[-1]
        assert backend.acquire_first(names, token(), OWNER, MINUTE) is None
        backend.break_(names[0])
        assert_same(backend.acquire_first(names, mine, OWNER, MINUTE), grant)
        assert sorted(held.name for held in backend.list()) == sorted(names[1:])

    def test_threads_that_ask_for_one_name_have_one_winner(self, backend: Backend) -> None:
        for number in range(5):
            grants = at_once(16, partial(asked, backend, [f"videos:{number}:k"]))
            assert len(grants) == 1
            held = backend.holder(grants[0].name)
            assert held is not None
            assert held.fence == grants[0].fence

    def test_threads_that_ask_for_the_first_of_some_names_share_them(self, backend: Backend) -> None:
        for number in range(3):
            names = [f"videos:{number}:k{free}" for free in range(6)]
            grants = at_once(16, partial(asked, backend, names))
            assert sorted(grant.name for grant in grants) == names


def assert_lasts(grant: Grant, lifetime: timedelta) -> None:
    """As long as asked for, to the resolution of the store's clock."""
    assert abs(timedelta(microseconds=grant.until - grant.since) - lifetime) <= RESOLUTION


def assert_same(again: Grant | None, grant: Grant) -> None:
    """The grant that stands, and not a new one; a store that only knows what is left tells the end anew."""
    assert again is not None
    assert (again.name, again.token, again.fence, again.since) == (
        grant.name,
        grant.token,
        grant.fence,
        grant.since,
    )
    assert abs(utc(again.until) - utc(grant.until)) < timedelta(seconds=1)


def fill(backend: Backend, names: list[str]) -> None:
    """Take all these names, for different holders."""
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda name: backend.acquire(name, token(), OWNER, timedelta(hours=1)), names))


def asked(backend: Backend, names: list[str]) -> Grant | None:
    """One of many who ask for the same."""
    if len(names) == 1:
        return backend.acquire(names[0], token(), OWNER, MINUTE)
    return backend.acquire_first(names, token(), OWNER, MINUTE)


def at_once(threads: int, work: Callable[[], Grant | None]) -> list[Grant]:
    """Do the work in that many threads at the same moment; the grants among their answers."""
    gate = threading.Barrier(threads)

    def begin(_: int) -> Grant | None:
        gate.wait()
        return work()

    with ThreadPoolExecutor(threads) as pool:
        return [grant for grant in pool.map(begin, range(threads)) if grant is not None]
