"""What a reservation may be told beyond its key and duration."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

from reservable import durations
from reservable.errors import InvalidDuration


class Options(TypedDict, total=False):
    """The keyword arguments of `reservation` and `areservation`, of a model and of a name, and of `reserving`."""

    wait: Any
    """How long to keep trying: seconds or any duration, `math.inf` without limit; None (the default): one try."""

    renew: bool
    """Keep it alive until it is released, or the thread or task that acquired it has ended. Default False."""

    on_error: Literal["release", "keep"]
    """`"keep"`: when the body of the block raises an `Exception`, the reservation stands until it runs out, so that
    what fails is not tried again before. Default `"release"`."""

    on_lost: Callable[[Any], Any] | None
    """Called with the handle, once, when the reservation is lost: in a thread of its own, or in the event loop,
    where it may be a coroutine function. Its errors are only logged."""

    at_least: Any
    """A duration. Released before that much time has passed since the grant, it runs out then and not at once."""


def within(at_least: Any, lifetime: timedelta) -> timedelta | datetime:
    """What `at_least` means; it cannot be promised beyond the lifetime, for the process may die."""
    least = durations.lifetime(at_least)
    if least > lifetime:
        raise InvalidDuration(
            f"at_least is {at_least!r}, longer than the reservation itself ({lifetime}): give it a longer duration"
        )
    return (durations.until(at_least) or least) if durations.moves(at_least) else least
