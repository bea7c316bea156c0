"""How long a row that failed is left alone."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from reservable import durations
from reservable.errors import ConfigurationError, InvalidDuration


@dataclass(frozen=True)
class Backoff:
    """After the n-th failure: `base * factor ** (n - 1)`, at most `max`, spread by plus or minus `jitter`.

    `base` is a delay and `max` a lifetime, each said as any duration; `factor` is at least 1; `jitter` is a part
    of the whole, from 0 to 1. Raises `ConfigurationError`.
    """

    base: Any = 15
    factor: float = 2
    max: Any = "1h"
    jitter: float = 0.1

    def __post_init__(self) -> None:
        try:
            ends = durations.delay(self.base), durations.lifetime(self.max)
        except InvalidDuration as error:
            raise ConfigurationError(f"this backoff cannot work: {error}") from error
        object.__setattr__(self, "_seconds", tuple(span.total_seconds() for span in ends))
        if not _is_number(self.factor) or not 1 <= self.factor < math.inf:
            raise ConfigurationError(f"the factor of a backoff is {self.factor!r}: a number from 1")
        if not _is_number(self.jitter) or not 0 <= self.jitter <= 1:
            raise ConfigurationError(
                f"the jitter of a backoff is {self.jitter!r}: a part of the whole, 0 to 1"
            )

    def delay(self, failures: int) -> timedelta:
        """How long to wait after so many failures in a row, 1 and more."""
        base, longest = self._seconds  # type: ignore[attr-defined]  # set above; a frozen class has no other way
        try:
            seconds = min(longest, base * float(self.factor) ** (failures - 1))
        except OverflowError:
            seconds = longest if base else 0.0
        spread = random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311 - spreads load, protects nothing
        return timedelta(seconds=seconds * spread)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
