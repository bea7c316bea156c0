"""What a store that declares `tells` does for waiters, and what one does that does not declare it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from reservable.backends.base import Backend
from reservable.errors import NotSupported
from reservable.testing.store import NAME, StoreFixtures, eventually, taken

LONG = 20.0


class Telling(StoreFixtures):
    """`watch(name)`: a context manager with `pause(seconds)`."""

    def test_what_is_not_declared_is_not_supported(self, backend: Backend) -> None:
        watch = getattr(backend, "watch", None)
        if not backend.capabilities.tells and watch is not None:
            with pytest.raises(NotSupported):
                watch(NAME)

    @pytest.mark.parametrize("ending", ["release", "break_"])
    def test_a_waiter_is_woken_when_the_holder_is_gone(
        self, backend: Backend, second: Backend, ending: str
    ) -> None:
        if not backend.capabilities.tells:
            return
        grant = taken(backend)
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(paused, second, LONG)
            time.sleep(0.3)
            assert not waiting.done()
            ended = time.monotonic()
            assert backend.release(NAME, grant.token) if ending == "release" else backend.break_(NAME)
            assert waiting.result(LONG) - ended < LONG / 2

    def test_a_waiter_is_awake_when_the_holders_time_is_over(self, backend: Backend, second: Backend) -> None:
        if not backend.capabilities.tells:
            return
        taken(backend, lifetime=timedelta(milliseconds=500))
        asked = time.monotonic()
        assert paused(second, LONG) - asked < LONG / 2
        eventually(lambda: backend.holder(NAME) is None)

    def test_a_pause_is_over_at_once_where_nobody_holds_it(self, backend: Backend) -> None:
        if not backend.capabilities.tells:
            return
        asked = time.monotonic()
        assert paused(backend, LONG) - asked < LONG / 2

    def test_a_pause_is_no_longer_than_was_asked(self, backend: Backend, second: Backend) -> None:
        if not backend.capabilities.tells:
            return
        taken(backend)
        asked = time.monotonic()
        assert 0.25 < paused(second, 0.3) - asked < LONG / 2


def paused(backend: Any, seconds: float) -> float:
    """When one pause on the name was over."""
    with backend.watch(NAME) as watch:
        watch.pause(seconds)
        return time.monotonic()
