"""What is asked of a database again, where that can help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy.engine import Dialect

from reservable.backends.database.connections import pause
from reservable.plans import Pause, run
from reservable.retrying import asking

T = TypeVar("T")


class Told(NamedTuple, Generic[T]):
    """What came of a request."""

    answer: T
    again: bool
    """Whether a reply was lost, so that it was asked a second time."""


def steadily_told(work: Callable[[], T], dialect: Dialect, *, repeatable: bool = True) -> Told[T]:
    """What the work returns; repeated while that can help, and if it is `repeatable` when a reply was lost."""

    def perform(step: Any) -> Any:
        if isinstance(step, Pause):
            return pause(dialect, step.seconds)
        return work()

    return Told(*run(asking(work, repeatable=repeatable), perform))
