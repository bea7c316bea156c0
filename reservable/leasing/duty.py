"""What a worker was told to do, checked: the part of `work` and `run` that comes before any colour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from reservable.calling import check_no_generator
from reservable.errors import ConfigurationError
from reservable.leasing.asked import Claim
from reservable.leasing.finishes import Finishes
from reservable.leasing.intake import Intake
from reservable.leasing.stopping import Stopping


class Round(NamedTuple):
    """Which rows, until when."""

    intake: Intake
    stopping: Stopping


class Duty(NamedTuple):
    """A round with a handler for each row, for so many at a time."""

    intake: Intake
    stopping: Stopping
    handler: Callable[[Any], Any]
    concurrency: int
    finishes: Finishes | None
    """Where what is done is gathered; None: each row is completed at once."""


def round_of(asked: Claim, stop: Any, idle: Any) -> Round:
    """Raises `ConfigurationError` and `InvalidDuration` for what cannot be done."""
    return Round(Intake(asked, idle), Stopping(stop))


def duty_of(
    round_: Round, handler: Callable[[Any], Any], concurrency: Any, *, complete_in_batches: bool
) -> Duty:
    """Raises `ConfigurationError`, and `NotSupported` for a generator function."""
    if not callable(handler):
        raise ConfigurationError(
            f"the handler is {handler!r}: give a function, which is called with each lease"
        )
    check_no_generator(handler)
    if type(concurrency) is not int or concurrency < 1:
        raise ConfigurationError(f"concurrency is {concurrency!r}: a whole number from 1")
    finishes = Finishes(max(round_.intake.batch, concurrency)) if complete_in_batches else None
    return Duty(*round_, handler, concurrency, finishes)
