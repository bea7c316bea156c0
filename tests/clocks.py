"""A host whose own clock is wrong."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta, tzinfo
from typing import Any
from unittest.mock import patch


@contextmanager
def wrong_clock(by: timedelta) -> Iterator[None]:
    """Whatever the library asks of this host's clock, the answer is wrong by so much."""
    real, real_ns = time.time, time.time_ns

    class Kind(type(datetime)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, datetime)

    class Wrong(datetime, metaclass=Kind):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + by

    with ExitStack() as stack:
        stack.enter_context(patch.object(time, "time", lambda: real() + by.total_seconds()))
        stack.enter_context(patch.object(time, "time_ns", lambda: real_ns() + int(by.total_seconds() * 1e9)))
        for name, module in [*sys.modules.items()]:
            if name.startswith("reservable.") and getattr(module, "datetime", None) is datetime:
                stack.enter_context(patch.object(module, "datetime", Wrong))
        yield
