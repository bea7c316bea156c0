"""Functions that run under a reservation, and what a refused call does."""

from __future__ import annotations

import asyncio
import copy
import functools
import pickle
import threading
import time
from typing import Any

import pytest

from reservable import (
    SKIPPED,
    AlreadyReserved,
    ConfigurationError,
    InvalidDuration,
    InvalidKey,
    NotSupported,
    areservation,
    configure,
    reservation,
    reserving,
)


@pytest.fixture(autouse=True)
def in_memory(unconfigured: None) -> None:
    configure("memory://")


def test_a_call_runs_under_the_reservation_and_returns_its_value():
    @reserving("report", 60)
    def report(first: int, *, second: int) -> int:
        """Adds."""
        assert reservation("report").holder() is not None
        return first + second

    assert report(1, second=2) == 3
    assert reservation("report").holder() is None
    assert (report.__name__, report.__doc__) == ("report", "Adds.")


def test_a_call_of_a_coroutine_function_too():
    @reserving("report", 60)
    async def report(value: int) -> int:
        assert await areservation("report").holder() is not None
        await asyncio.sleep(0)
        return value

    assert asyncio.iscoroutinefunction(report)
    assert asyncio.run(report(3)) == 3
    assert reservation("report").holder() is None


def test_a_refused_call_raises():
    @reserving("report", 60)
    def report() -> None:
        pytest.fail("ran")

    @reserving("report", 60)
    async def later() -> None:
        pytest.fail("ran")

    with reservation("report") as held:
        with pytest.raises(AlreadyReserved) as refused:
            report()
        assert refused.value.holder is not None
        assert refused.value.holder.fence == held.fence
        with pytest.raises(AlreadyReserved):
            asyncio.run(later())


def test_a_refused_call_is_skipped_where_that_was_asked_for():
    @reserving("report", 60, refused="skip")
    def report() -> None:
        return None

    @reserving("report", 60, refused="skip")
    async def later() -> None:
        return None

    with reservation("report"):
        assert report() is SKIPPED
        assert asyncio.run(later()) is SKIPPED
    assert report() is None
    assert not SKIPPED
    assert repr(SKIPPED) == "SKIPPED"
    assert copy.deepcopy(SKIPPED) is SKIPPED
    assert pickle.loads(pickle.dumps(SKIPPED)) is SKIPPED


def test_an_already_reserved_of_the_body_is_not_taken_for_a_refused_call():
    @reserving("report", 60, refused="skip")
    def report() -> None:
        with reservation("other"):
            pass

    with reservation("other"), pytest.raises(AlreadyReserved, match="other"):
        report()


def test_a_refused_call_waits_where_that_was_asked_for():
    calls = []

    @reserving("report", 60, refused="wait")
    def report() -> None:
        calls.append(time.monotonic())

    held = reservation("report")
    held.acquire()
    thread = threading.Thread(target=report)
    thread.start()
    time.sleep(0.1)
    assert not calls
    held.release()
    thread.join(10)
    assert len(calls) == 1


def test_a_limited_wait_and_then_what_was_asked_for():
    @reserving("report", 60, refused="skip", wait=0.1)
    def report() -> None:
        pytest.fail("ran")

    with reservation("report"):
        begun = time.monotonic()
        assert report() is SKIPPED
        assert time.monotonic() - begun >= 0.1


def test_every_call_has_a_reservation_of_its_own():
    inside = threading.Event()
    leave = threading.Event()
    answers = []

    @reserving("report", 60, refused="skip")
    def report() -> str:
        inside.set()
        leave.wait(10)
        return "ran"

    thread = threading.Thread(target=lambda: answers.append(report()))
    thread.start()
    inside.wait(10)
    assert report() is SKIPPED
    leave.set()
    thread.join(10)
    assert answers == ["ran"]
    assert report() == "ran"


def test_a_method_is_a_function_too():
    class Job:
        @reserving("job", 60)
        def run(self, value: int) -> int:
            return value

    assert Job().run(7) == 7


def test_the_store_may_be_configured_after_decorating():
    configure(None)

    @reserving("report", 60)
    def report() -> str:
        return "ran"

    with pytest.raises(ConfigurationError):
        report()
    configure("memory://")
    assert report() == "ran"


def test_bad_input_is_refused_when_decorating():
    with pytest.raises(InvalidDuration):
        reserving("report", 0)
    with pytest.raises(InvalidKey):
        reserving("", 60)
    with pytest.raises(ConfigurationError, match="refused"):
        reserving("report", 60, refused="skipped")  # type: ignore[call-overload]
    with pytest.raises(ConfigurationError, match="write @reserving"):
        reserving(test_a_method_is_a_function_too)()  # type: ignore[call-arg]
    with pytest.raises(NotSupported, match="generator"):

        @reserving("report", 60)
        def rows():
            yield 1

    with pytest.raises(NotSupported, match="generator"):

        @reserving("report", 60)
        async def more():
            yield 1


def test_static_and_class_methods_whichever_decorator_comes_first():
    class Job:
        @reserving("job", 60)
        @staticmethod
        async def static() -> str:
            with pytest.raises(AlreadyReserved):
                async with areservation("job"):
                    pass
            return "ran"

        @reserving("job", 60)
        @classmethod
        def of_the_class(cls) -> str:
            with pytest.raises(AlreadyReserved), reservation("job"):
                pass
            return cls.__name__

    assert asyncio.run(Job.static()) == "ran"
    assert Job.of_the_class() == "Job"


def test_an_object_with_an_async_call():
    class Job:
        async def __call__(self) -> bool:
            return await areservation("job").acquire()

    assert asyncio.run(reserving("job", 60)(Job())()) is False


@pytest.mark.parametrize("kind", ["coroutine", "generator", "async generator"])
def test_work_that_would_run_after_the_call_is_not_done_without_the_reservation(kind: str):
    async def later() -> None:
        pytest.fail("ran")

    def rows():
        yield pytest.fail("ran")

    async def more():
        yield pytest.fail("ran")

    make = {"coroutine": later, "generator": rows, "async generator": more}[kind]

    @reserving("job", 60)
    def wrapped() -> object:
        return make()

    with pytest.raises(NotSupported, match="wrapped"):
        wrapped()
    assert reservation("job").holder() is None


def test_what_is_no_function_itself_is_told_where_to_put_it():
    def report(_: object) -> int:
        return 1

    kinds: list[Any] = [property, functools.partialmethod, functools.cached_property]
    for kind in kinds:
        with pytest.raises(ConfigurationError, match=f"{kind.__name__}: decorate the function inside it"):
            reserving("report")(kind(report))
