"""What anybody may see: who holds a name, everything that is held, and nothing of another prefix."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, timedelta
from itertools import pairwise

import pytest

from reservable.backends.base import Backend
from reservable.grants import Released, utc
from reservable.testing.granting import fill
from reservable.testing.store import MINUTE, NAME, OWNER, SHORT, SKEW, StoreFixtures, over, taken, token

HELD = ["videos:1:a", "videos:2:a", "videos:22:a", "videos:2:b", "Videos:2:a", "images:2:a", "nightly"]

PATTERNS = {
    "*": set(HELD),
    "videos:*": {"videos:1:a", "videos:2:a", "videos:22:a", "videos:2:b"},
    "videos:?:a": {"videos:1:a", "videos:2:a"},
    "*:2:*": {"videos:2:a", "videos:2:b", "Videos:2:a", "images:2:a"},
    "videos:[1-2]:[!b]": {"videos:1:a", "videos:2:a"},
    "[Vi]*:2:a": {"Videos:2:a", "images:2:a"},
    "nightly": {"nightly"},
    "night": set(),
    "videos:2": set(),
    "VIDEOS:*": set(),
    "": set(),
}


class Looking(StoreFixtures):
    """`holder` and `list`."""

    def test_a_bystander_sees_who_holds_it_and_until_when(self, backend: Backend, second: Backend) -> None:
        mine = token()
        grant = backend.acquire(NAME, mine, "render-3:77", MINUTE)
        answered = time.monotonic()
        assert grant is not None
        for _ in range(3):
            asking = time.monotonic()
            held = second.holder(NAME)
            assert held is not None
            assert (held.name, held.owner, held.fence) == (NAME, "render-3:77", grant.fence)
            assert held.since == utc(grant.since)
            assert abs(held.until - utc(grant.until)) <= SKEW
            assert held.since.tzinfo is UTC
            assert held.until.tzinfo is UTC
            # Never more than the truth: what has passed for certain is not counted any more.
            assert 50 < held.remaining <= 60 - (asking - answered) + SKEW.total_seconds()
            assert mine not in repr(held)
            time.sleep(0.06)

    def test_nobody_holds_it(self, backend: Backend) -> None:
        assert backend.holder(NAME) is None
        grant = taken(backend)
        backend.release(NAME, grant.token)
        assert backend.holder(NAME) is None

    def test_what_remains_is_never_negative(self, backend: Backend) -> None:
        taken(backend, lifetime=SHORT)
        seen = []
        while (held := backend.holder(NAME)) is not None:
            seen.append(held.remaining)
        skew = SKEW.total_seconds()
        assert all(0 <= remaining <= SHORT.total_seconds() + skew for remaining in seen)
        assert all(later <= earlier + skew for earlier, later in pairwise(seen))

    def test_looking_changes_nothing(self, backend: Backend, second: Backend) -> None:
        grant = taken(backend)
        for _ in range(3):
            second.holder(NAME)
            list(second.list())
            second.prune()
        again = backend.acquire(NAME, grant.token, OWNER, MINUTE)
        assert again is not None
        assert (again.fence, again.since) == (grant.fence, grant.since)

    @pytest.mark.parametrize(
        "owner",
        ["Jürgen 行 🎬", "o" * 255, "é" * 255, "a 'quoted' \"label\"; %s :name ? \\ \n", "R1 x 1 y", ""],
    )
    def test_an_owner_may_be_called_anything(self, backend: Backend, second: Backend, owner: str) -> None:
        assert backend.acquire(NAME, token(), owner, MINUTE) is not None
        held = second.holder(NAME)
        assert held is not None
        assert held.owner == owner
        assert [shown.owner for shown in second.list()] == [owner]

    @pytest.mark.parametrize(
        "owner", ["o" * 1000, "🎬" * 300, "a\0b", "a\ud800b"], ids=["long", "wide", "NUL", "surrogate"]
    )
    def test_an_owner_that_the_store_cannot_keep_is_shown_as_well_as_it_can(
        self, backend: Backend, second: Backend, owner: str
    ) -> None:
        grant = backend.acquire(NAME, token(), owner, MINUTE)
        assert grant is not None
        held = second.holder(NAME)
        assert held is not None
        assert held.owner[:1] == owner[:1]
        assert len(held.owner) <= len(owner)
        assert backend.release(NAME, grant.token) is Released.YES

    @pytest.mark.parametrize("pattern", PATTERNS)
    def test_listing_by_pattern(self, backend: Backend, second: Backend, pattern: str) -> None:
        for name in HELD:
            taken(backend, name)
        found = [held.name for held in second.list(pattern)]
        assert len(found) == len(set(found))
        assert set(found) == PATTERNS[pattern]

    def test_listing_shows_what_is_held_now(self, backend: Backend, second: Backend) -> None:
        taken(backend, "videos:1:over", SHORT)
        released = taken(backend, "videos:2:released")
        backend.release(released.name, released.token)
        taken(backend, "videos:3:broken")
        backend.break_("videos:3:broken")
        grant = taken(backend, "videos:4:held")
        over(second, "videos:1:over")
        (held,) = second.list()
        assert (held.name, held.owner, held.fence) == ("videos:4:held", OWNER, grant.fence)
        assert held.since == utc(grant.since)
        assert abs(held.until - utc(grant.until)) <= SKEW
        assert 50 < held.remaining <= 60 + SKEW.total_seconds()

    def test_more_than_a_page_is_listed_once_each(self, backend: Backend, second: Backend) -> None:
        names = {f"videos:{number}:k" for number in range(1200)}
        fill(backend, sorted(names))
        found = [held.name for held in second.list()]
        assert len(found) == 1200
        assert set(found) == names
        assert len([*second.list("videos:*1:k")]) == 120

    def test_prefixes_never_see_each_other(self, with_prefix: Callable[[str], Backend]) -> None:
        one, other, alike = with_prefix("shop:"), with_prefix("blog:"), with_prefix("Shop:")
        grant = taken(one)
        for stranger in (other, alike):
            assert stranger.holder(NAME) is None
            assert list(stranger.list()) == []
            assert list(stranger.list("*shop*")) == []
            assert stranger.break_(NAME) is False
            assert stranger.extend(NAME, grant.token, MINUTE) is None
            assert stranger.release(NAME, grant.token) is Released.NOT_HELD
            theirs = stranger.acquire_first([NAME, "x"], token(), OWNER, MINUTE)
            assert theirs is not None
            assert theirs.name == NAME
            stranger.prune()
            assert stranger.release(NAME, theirs.token) is Released.YES
        assert [held.name for held in one.list("videos:*")] == [NAME]
        assert one.release(NAME, grant.token) is Released.YES

    def test_names_are_told_without_the_prefix(self, with_prefix: Callable[[str], Backend]) -> None:
        store = with_prefix("shop:")
        assert store.prefix == "shop:"
        assert taken(store).name == NAME
        held = store.holder(NAME)
        assert held is not None
        assert held.name == NAME
        assert [shown.name for shown in store.list("videos:*")] == [NAME]
        assert list(store.list("shop:*")) == []
        first = store.acquire_first([NAME, "videos:1:k"], token(), OWNER, timedelta(hours=1))
        assert first is not None
        assert first.name == "videos:1:k"
