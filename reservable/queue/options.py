"""How a model is queued: what `__queue__` says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, get_args

from reservable import durations
from reservable.errors import ConfigurationError, InvalidDuration
from reservable.queue.backoff import Backoff
from reservable.queue.statuses import Statuses, Value

Guard = Literal["warn", "raise", "off"]

LONGEST_STEP = 64
"""Characters of a step's name."""


@dataclass(frozen=True)
class QueueOptions:
    """The options of one queue, checked when they are made. Raises `ConfigurationError`.

    `lease` is a lifetime: how long a claim holds without a heartbeat, which comes three times as often.
    `max_attempts` counts claims; None: without limit. `statuses` and `extra` are told by `Statuses`. `strict`
    refuses the late finish of a lease that has run out, even when nobody has taken the row over. `guard` is what
    becomes of a flush that changes the queue's columns. `steps` are the stages that a row goes through in turn,
    each with attempts of its own. `notify` has PostgreSQL wake idle workers when there is something to do (LISTEN and
    NOTIFY); elsewhere it does nothing.
    """

    lease: Any = "60s"
    max_attempts: int | None = 5
    backoff: Backoff = field(default_factory=Backoff)
    statuses: Mapping[str, Value | None] | None = None
    extra: Iterable[Value] = ()
    strict: bool = False
    guard: Guard = "warn"
    steps: tuple[str, ...] = ()
    notify: bool = False

    values: Statuses = field(init=False, repr=False, compare=False)
    """What is stored for each status."""
    lifetime: timedelta = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.extra, str):
            raise ConfigurationError(f"extra is {self.extra!r}: give a list of stored values")
        object.__setattr__(self, "extra", tuple(self.extra))
        object.__setattr__(self, "steps", _steps(self.steps))
        object.__setattr__(self, "values", Statuses(self.statuses, self.extra))
        try:
            object.__setattr__(self, "lifetime", durations.lifetime(self.lease))
        except InvalidDuration as error:
            raise ConfigurationError(f"the lease of a queue: {error}") from error
        limit = self.max_attempts
        if limit is not None and (type(limit) is not int or limit < 1):
            raise ConfigurationError(
                f"max_attempts is {limit!r}: a whole number from 1, or None for no limit"
            )
        if not isinstance(self.backoff, Backoff):
            raise ConfigurationError(f"backoff is {self.backoff!r}: give a Backoff")
        for name, value in (("strict", self.strict), ("notify", self.notify)):
            if type(value) is not bool:
                raise ConfigurationError(f"{name} is {value!r}: True or False")
        if self.guard not in get_args(Guard):
            raise ConfigurationError(f"guard is {self.guard!r}: one of {', '.join(get_args(Guard))}")

    def has_attempts_left(self, attempts: int) -> bool:
        """Whether a row that was claimed so often may be claimed again."""
        return self.max_attempts is None or attempts < self.max_attempts

    def after(self, step: str | None) -> str | None:
        """The step that follows; None after the last, and where there are none."""
        if step not in self.steps:
            return None
        following = self.steps.index(step) + 1
        return self.steps[following] if following < len(self.steps) else None


def _steps(steps: Any) -> tuple[str, ...]:
    named = () if isinstance(steps, str) else tuple(steps)
    if isinstance(steps, str) or not all(
        isinstance(step, str) and 1 <= len(step) <= LONGEST_STEP and step.isprintable() for step in named
    ):
        raise ConfigurationError(
            f"steps are {steps!r}: give names of 1 to {LONGEST_STEP} characters, in order"
        )
    if len({step.casefold() for step in named}) < len(named):
        raise ConfigurationError(f"two steps have the same name: {named!r}")
    return tuple(str.__str__(step) for step in named)


def options_of(cls: Any) -> QueueOptions:
    """What the class says in `__queue__`; raises `ConfigurationError`."""
    options = getattr(cls, "__queue__", None)
    if options is None:
        return _DEFAULT
    if not isinstance(options, QueueOptions):
        raise ConfigurationError(f"{cls.__name__}.__queue__ is {options!r}: give QueueOptions(...)")
    return options


_DEFAULT = QueueOptions()
