"""The rules of the queue without a database: options, statuses, backoff, signals, and errors as text."""

from __future__ import annotations

import enum
import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reservable import (
    Backoff,
    Cancel,
    ConfigurationError,
    InvalidDuration,
    NotSupported,
    QueueOptions,
    Retry,
    Snooze,
    Status,
)
from reservable.queue.failures import KEPT, LIMIT, added, dumped, entry, read
from reservable.queue.statuses import Statuses


class Phase(enum.StrEnum):
    WAITING = "waiting"


@pytest.mark.parametrize(
    "bad",
    [
        {"lease": 0},
        {"lease": "nonsense"},
        {"lease": None},
        {"max_attempts": 0},
        {"max_attempts": True},
        {"max_attempts": "5"},
        {"backoff": 5},
        {"strict": 1},
        {"guard": "perhaps"},
        {"steps": "download"},
        {"steps": ("a", "A")},
        {"steps": ("", "b")},
        {"steps": ("x" * 65,)},
        {"statuses": {"done": "x"}},
        {"statuses": {"pending": None}},
        {"statuses": {"succeeded": None}},
        {"statuses": {"pending": "running"}},
        {"statuses": {"pending": "Running"}},
        {"statuses": {"pending": 1}},
        {"statuses": {"pending": True}},
        {"statuses": {"pending": ""}},
        {"statuses": {"pending": "x" * 33}},
        {"statuses": {"pending": " x"}},
        {"extra": ("failed",)},
        {"extra": (1,)},
    ],
)
def test_options_that_cannot_work(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        QueueOptions(**bad)


def test_statuses_are_renamed_left_out_and_added() -> None:
    statuses = Statuses({"pending": Phase.WAITING, "paused": None}, ("archived",))
    assert statuses.values == ("waiting", "running", "succeeded", "failed", "cancelled", "archived")
    assert type(statuses.value(Status.PENDING)) is str
    assert statuses.role("waiting") is Status.PENDING
    assert statuses.role("archived") is None
    with pytest.raises(NotSupported, match="paused"):
        statuses.value(Status.PAUSED)


def test_steps_follow_each_other() -> None:
    options = QueueOptions(steps=("a", "b"))
    assert [options.after(step) for step in ("a", "b", None)] == ["b", None, None]


def test_attempts_without_a_limit() -> None:
    assert QueueOptions(max_attempts=None).has_attempts_left(10**6)
    assert not QueueOptions(max_attempts=2).has_attempts_left(2)


def test_a_backoff_grows_up_to_its_longest() -> None:
    backoff = Backoff(base=15, factor=2, max="1 minute", jitter=0)
    assert [backoff.delay(n).total_seconds() for n in (1, 2, 3, 4, 10**6)] == [15, 30, 60, 60, 60]


@given(st.integers(1, 10**9), st.floats(0, 1))
def test_a_backoff_spreads_by_its_jitter(failures: int, jitter: float) -> None:
    delay = Backoff(base=10, factor=2, max=100, jitter=jitter).delay(failures)
    middle = timedelta(seconds=min(100, 10 * 2 ** (min(failures, 10) - 1)))
    slack = timedelta(microseconds=1)
    assert middle * (1 - jitter) - slack <= delay <= middle * (1 + jitter) + slack


@pytest.mark.parametrize(
    "bad",
    [
        {"base": -1},
        {"max": 0},
        {"factor": 0.5},
        {"factor": "2"},
        {"jitter": 1.1},
        {"jitter": -0.1},
        {"jitter": True},
    ],
)
def test_a_backoff_that_cannot_work(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Backoff(**bad)


def test_signals_are_checked_where_they_are_raised() -> None:
    with pytest.raises(InvalidDuration):
        Snooze(-1)
    with pytest.raises(InvalidDuration):
        Retry("nonsense")
    assert Cancel("why").reason == "why"


@given(st.text(st.characters(), max_size=300), st.integers(1, 2000))
def test_any_text_becomes_valid_and_bounded(text: str, times: int) -> None:
    stored = dumped(added([], entry(ValueError(text * times), 1)))
    assert stored.isascii()
    assert len(stored) <= LIMIT
    assert "\\u0000" not in stored
    [one] = json.loads(stored)
    one["message"].encode()


def test_the_newest_are_kept_and_the_whole_is_bounded() -> None:
    errors: list[dict[str, Any]] = []
    for number in range(30):
        errors = added(errors, entry(f"{number}", number))
    assert [one["attempt"] for one in errors] == [*range(30 - KEPT, 30)]
    for number in range(5):
        errors = added(errors, entry("\U0001f600" * 100_000, number))
        assert len(dumped(errors)) <= LIMIT
        assert errors[-1]["attempt"] == number


def test_the_end_of_a_long_traceback_is_kept() -> None:
    def ping(left: int) -> None:
        if not left:
            raise ValueError("the end")
        pong(left - 1)

    def pong(left: int) -> None:
        ping(left)

    with pytest.raises(ValueError) as caught:  # noqa: PT011
        ping(400)  # frames that take turns are not told as repetitions
    stored = entry(caught.value, 1)
    assert "the end" in stored["traceback"][-50:]
    assert "[...]" in stored["traceback"]
    assert stored["traceback"].startswith("Traceback")


WHOLE = {"type": "E", "message": "m", "traceback": "t", "attempt": 2, "at": "2026-01-02T03:04:05+00:00"}
UNKNOWN = {"type": "", "message": "", "traceback": "", "attempt": 0, "at": ""}


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        (None, []),
        ("", []),
        ("null", []),
        ("[]", []),
        ("{}", []),
        (json.dumps([WHOLE]), [WHOLE]),
        (json.dumps([WHOLE | {"host": "a"}]), [WHOLE | {"host": "a"}]),
        ('[{"type": "x"}]', [UNKNOWN | {"type": "x"}]),
        ('[{"type": 1, "message": {"a": null}, "traceback": null, "attempt": "3", "at": 7}]',
         [UNKNOWN | {"type": "1", "message": '{"a": null}', "at": "7"}]),
        ('{"a":1}', [UNKNOWN | {"message": '{"a":1}'}]),
        ('"text"', [UNKNOWN | {"message": '"text"'}]),
        ('[1, "two", {"a": 3}]', [UNKNOWN | {"message": text} for text in ("1", "two", '{"a": 3}')]),
        ("not json", [UNKNOWN | {"message": "not json"}]),
        (b"\xffbytes", [UNKNOWN | {"message": "\\xffbytes"}]),
        ('["\\ud800 \\u0000"]', [UNKNOWN | {"message": "\\ud800 \\x00"}]),
        ("9" * 5000, [UNKNOWN | {"message": "9" * 5000}]),
        ([WHOLE], [WHOLE]),
        ({"a": 1}, [UNKNOWN | {"message": '{"a": 1}'}]),
    ],
)  # fmt: skip
def test_what_others_have_stored_as_errors_is_read_as_text(stored: Any, found: Any) -> None:
    assert read(stored) == found
    assert read(dumped(read(stored))) == found
    *earlier, newest = added(stored, entry("no", 1))
    assert earlier == found
    assert newest["message"] == "no"


def test_what_others_have_stored_is_bounded_and_never_too_deep() -> None:
    assert len(dumped(read("[" * 100_000))) < LIMIT
    assert len(dumped(added("x" * 1_000_000, entry("no", 1)))) < LIMIT
