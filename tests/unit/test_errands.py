"""Work in a thread, for a caller who has only so much time."""

from __future__ import annotations

import threading
from functools import partial
from time import monotonic

import pytest

from reservable.backends.database.errands import errand
from tests.waiting import eventually


def test_what_is_done_in_time_is_returned() -> None:
    late: list[int] = []
    assert errand(lambda: 7, monotonic() + 5, late.append) == 7
    assert late == []


def test_what_is_raised_in_time_is_raised() -> None:
    late: list[int] = []

    def fail() -> int:
        raise KeyError("it")

    with pytest.raises(KeyError, match="it"):
        errand(fail, monotonic() + 5, late.append)
    assert late == []


def test_what_is_returned_too_late_is_given_away() -> None:
    late: list[int] = []
    going_on = threading.Event()

    def work() -> int:
        going_on.wait(5)
        return 7

    with pytest.raises(TimeoutError):
        errand(work, monotonic() + 0.01, late.append)
    assert late == []
    going_on.set()
    eventually(lambda: late == [7])


def test_what_is_raised_too_late_is_nobody_s() -> None:
    late: list[int] = []
    going_on, over = threading.Event(), threading.Event()

    def work() -> int:
        going_on.wait(5)
        over.set()
        raise KeyError("it")

    with pytest.raises(TimeoutError):
        errand(work, monotonic() - 1, late.append)
    going_on.set()
    assert over.wait(5)
    assert late == []


def test_nothing_is_ever_both_returned_and_given_away() -> None:
    outcomes: list[int] = []
    for number in range(500):
        try:
            outcomes.append(errand(partial(int, number), monotonic() + 0.00005, outcomes.append))
        except TimeoutError:
            continue
    eventually(lambda: len(outcomes) >= 500)
    assert sorted(outcomes) == list(range(500))
