"""How a reservation ends: by its time, by its holder, by an operator; and what a stale holder can still do."""

from __future__ import annotations

import time
from datetime import timedelta
from itertools import pairwise

import pytest

from reservable.backends.base import Backend
from reservable.grants import Grant, Holder, Released, utc
from reservable.testing.store import (
    MINUTE,
    NAME,
    OWNER,
    RESOLUTION,
    SHORT,
    SKEW,
    StoreFixtures,
    eventually,
    extend_each,
    is_free,
    over,
    taken,
    token,
)


class Ending(StoreFixtures):
    """Expiry, `release`, `extend`, `break_`, `prune`, and the fence across all of them."""

    def test_it_ends_when_its_time_is_over_and_not_before(self, backend: Backend, second: Backend) -> None:
        delays = []
        for _ in range(10):
            asked = time.monotonic()
            mine = taken(backend, lifetime=SHORT)
            theirs = eventually(lambda: second.acquire(NAME, token(), OWNER, SHORT))
            took = timedelta(seconds=time.monotonic() - asked)
            assert took >= SHORT - RESOLUTION
            assert utc(theirs.since) >= utc(mine.until) - SKEW  # by the store's own clock
            delays.append(theirs.since - mine.until)
            second.release(NAME, theirs.token)
        assert min(delays) < 20_000, "granted late, in microseconds, every time"

    def test_a_lifetime_of_a_millisecond_is_granted_and_ends(self, backend: Backend, second: Backend) -> None:
        for _ in range(20):
            mine = taken(backend, lifetime=timedelta(milliseconds=1))
            assert 0 < mine.until - mine.since <= 2000
            over(second)
            assert backend.extend(NAME, mine.token, MINUTE) is None

    def test_what_is_over_is_free_for_everybody_who_looks(self, backend: Backend, second: Backend) -> None:
        mine = taken(backend, lifetime=SHORT)
        over(second)
        assert backend.holder(NAME) is None
        assert list(backend.list()) == []
        assert backend.break_(NAME) is False
        assert backend.release(NAME, mine.token) is Released.NOT_HELD
        assert is_free(second)

    def test_a_stale_holder_changes_nothing_after_somebody_took_over(
        self, backend: Backend, second: Backend
    ) -> None:
        mine = taken(backend, lifetime=SHORT)
        theirs = eventually(lambda: second.acquire(NAME, token(), "taker", MINUTE))
        before = second.holder(NAME)
        for _ in range(3):
            assert backend.release(NAME, mine.token) is Released.BY_ANOTHER
            assert backend.extend(NAME, mine.token, timedelta(hours=9)) is None
            assert backend.acquire(NAME, mine.token, OWNER, MINUTE) is None
        assert_unchanged(second.holder(NAME), before, theirs)
        assert not is_free(backend)
        assert second.release(NAME, theirs.token) is Released.YES

    def test_a_stale_holder_changes_nothing_while_nobody_holds(
        self, backend: Backend, second: Backend
    ) -> None:
        mine = taken(backend, lifetime=SHORT)
        over(second)
        for _ in range(3):
            assert backend.extend(NAME, mine.token, MINUTE) is None
            assert second.extend(NAME, mine.token, MINUTE) is None
            assert backend.release(NAME, mine.token) is Released.NOT_HELD
        assert second.holder(NAME) is None
        assert is_free(second)

    def test_a_stale_holder_changes_nothing_after_the_taker_released(
        self, backend: Backend, second: Backend
    ) -> None:
        mine = taken(backend, lifetime=SHORT)
        theirs = eventually(lambda: second.acquire(NAME, token(), OWNER, MINUTE))
        assert second.release(NAME, theirs.token) is Released.YES
        for stale in (mine, theirs):
            assert backend.extend(NAME, stale.token, MINUTE) is None
            assert backend.release(NAME, stale.token) is Released.NOT_HELD
        assert second.holder(NAME) is None

    def test_releasing_one_name_leaves_the_holders_others(self, backend: Backend) -> None:
        mine = token()
        for name in ("videos:1:k", "videos:2:k"):
            taken(backend, name, by=mine)
        assert backend.release("videos:1:k", mine) is Released.YES
        assert [held.name for held in backend.list()] == ["videos:2:k"]

    @pytest.mark.parametrize("seconds", [5, 600], ids=["shorter", "longer"])
    def test_extending_sets_what_is_left_and_never_adds(
        self, backend: Backend, second: Backend, seconds: int
    ) -> None:
        grant = taken(backend)
        left = timedelta(seconds=seconds)
        for _ in range(3):
            until = backend.extend(NAME, grant.token, left)
            held = second.holder(NAME)
            assert until is not None
            assert held is not None
            assert abs(held.until - utc(until)) <= SKEW
            assert seconds - 1 < held.remaining <= seconds + 0.001
            assert (held.fence, held.since, held.owner) == (grant.fence, utc(grant.since), OWNER)
        assert not is_free(second)
        assert backend.release(NAME, grant.token) is Released.YES

    def test_what_was_extended_to_less_ends_sooner(self, backend: Backend, second: Backend) -> None:
        mine = taken(backend)
        until = backend.extend(NAME, mine.token, SHORT)
        assert until is not None
        theirs = eventually(lambda: second.acquire(NAME, token(), OWNER, MINUTE))
        assert utc(until) - SKEW <= utc(theirs.since) < utc(mine.until)

    def test_what_was_extended_in_time_does_not_end(self, backend: Backend, second: Backend) -> None:
        mine = taken(backend, lifetime=timedelta(milliseconds=600))
        until = time.monotonic() + 0.6
        assert backend.extend(NAME, mine.token, MINUTE) is not None
        while time.monotonic() <= until + RESOLUTION.total_seconds():
            assert not is_free(second)
            time.sleep(0.02)
        assert not is_free(second)
        assert backend.release(NAME, mine.token) is Released.YES

    def test_extending_many_extends_what_stands_with_its_token_and_nothing_else(
        self, backend: Backend, second: Backend
    ) -> None:
        gone = taken(backend, "videos:1:over", SHORT)
        over(second, gone.name)
        released = taken(backend, "videos:1:released")
        backend.release(released.name, released.token)
        theirs = taken(second, "videos:1:theirs")
        bystander = taken(backend, "videos:1:bystander")
        mine = [taken(backend, f"videos:{n}:mine", timedelta(seconds=30)) for n in range(3)]
        asked = [(grant.name, grant.token) for grant in (gone, released, *mine)]
        asked += [(theirs.name, mine[0].token), ("videos:9:never", token()), ("videos:9:mine", mine[1].token)]
        ends = extend_each(backend, asked, timedelta(hours=1))
        held = {holder.name: holder for holder in second.list()}
        assert set(ends) == {grant.name for grant in mine}
        for grant in mine:
            assert abs(held[grant.name].until - utc(ends[grant.name])) <= SKEW
            assert 3599 < held[grant.name].remaining <= 3600.001
            assert held[grant.name].fence == grant.fence
        for grant in (theirs, bystander):
            assert_unchanged(held.pop(grant.name), second.holder(grant.name), grant)
        assert set(held) == set(ends)
        for grant in (*mine, theirs, bystander):
            assert backend.release(grant.name, grant.token) is Released.YES

    def test_extending_many_keeps_each_name_to_its_own_token(self, backend: Backend) -> None:
        one, other = (taken(backend, f"videos:{n}:k", timedelta(seconds=30)) for n in range(2))
        swapped = [(one.name, other.token), (other.name, one.token)]
        assert extend_each(backend, swapped, timedelta(hours=1)) == {}
        assert all(holder.remaining <= 30 for holder in backend.list())

    def test_extending_more_than_a_batch(self, backend: Backend) -> None:
        held = {f"videos:{n}:k": token() for n in range(1203)}
        for name, mine in held.items():
            taken(backend, name, by=mine)
        ends = extend_each(backend, [*held.items()], timedelta(hours=1))
        assert set(ends) == set(held)
        assert all(holder.remaining > 3500 for holder in backend.list())
        assert extend_each(backend, [], MINUTE) == {}

    def test_an_operator_breaks_anybodys(self, backend: Backend, second: Backend) -> None:
        mine = taken(backend)
        bystander = taken(backend, "videos:250:download")
        assert second.break_(NAME) is True
        assert second.holder(NAME) is None
        assert backend.extend(NAME, mine.token, MINUTE) is None
        assert backend.release(NAME, mine.token) is Released.NOT_HELD
        assert second.break_(NAME) is False
        assert is_free(second)
        assert backend.release("videos:250:download", bystander.token) is Released.YES

    def test_breaking_what_was_never_held(self, backend: Backend) -> None:
        assert backend.break_(NAME) is False
        assert is_free(backend)

    def test_pruning_takes_what_is_over_and_nothing_else(self, backend: Backend, second: Backend) -> None:
        ends = [timedelta(seconds=30), timedelta(hours=1), timedelta(days=1), timedelta(days=30)]
        live = {f"videos:{n}:live": taken(backend, f"videos:{n}:live", end) for n, end in enumerate(ends)}
        gone = [f"videos:{n}:over" for n in range(5)]
        for name in gone:
            taken(backend, name, timedelta(milliseconds=1))
        released = taken(backend, "videos:9:released")
        backend.release(released.name, released.token)
        for name in gone:
            over(second, name)
        assert 0 <= second.prune() <= len(gone) + 1
        assert backend.prune() == 0
        assert {held.name: held.fence for held in second.list()} == {n: g.fence for n, g in live.items()}
        for name, grant in live.items():
            assert second.acquire(name, token(), OWNER, MINUTE) is None
            assert backend.release(name, grant.token) is Released.YES

    def test_pruning_an_empty_store(self, backend: Backend) -> None:
        assert backend.prune() == 0

    def test_fences_of_a_name_only_grow_however_it_ended(self, backend: Backend, second: Backend) -> None:
        fences = []
        for number in range(1000):
            store = (backend, second)[number % 2]
            expiring = number % 50 == 0
            grant = taken(store, lifetime=timedelta(milliseconds=1) if expiring else MINUTE)
            fences.append(grant.fence)
            if expiring:
                over(second)
            elif number % 10 == 1:
                assert backend.break_(NAME)
            else:
                assert store.release(NAME, grant.token) is Released.YES
            if number % 25 == 0:
                second.prune()
        assert all(later > earlier for earlier, later in pairwise(fences))

    def test_the_fence_is_the_same_in_the_grant_and_wherever_it_is_shown(self, backend: Backend) -> None:
        grant = backend.acquire_first(["videos:1:k", NAME], token(), OWNER, MINUTE)
        assert grant is not None
        backend.extend(grant.name, grant.token, timedelta(hours=1))
        held = backend.holder(grant.name)
        assert held is not None
        assert [held.fence] == [shown.fence for shown in backend.list()] == [grant.fence]


def assert_unchanged(now: Holder | None, before: Holder | None, grant: Grant) -> None:
    """Whoever holds it is who was granted it, and to the same end."""
    assert now is not None
    assert before is not None
    assert (now.name, now.owner, now.fence, now.since) == (
        before.name,
        before.owner,
        grant.fence,
        before.since,
    )
    assert abs(now.until - before.until) <= SKEW
    assert abs(now.until - utc(grant.until)) <= SKEW
