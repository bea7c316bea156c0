"""Django's own refusal of blocking code where an event loop runs."""

from __future__ import annotations

from typing import Any

from django.utils.asyncio import async_unsafe

_in_loops: Any = async_unsafe(
    "You cannot call this from an async context - use its twin (areserve, arelease, ais_reserved, areservation, "
    "afirst_reserved ...), a thread or sync_to_async."
)(lambda: None)


def must_be_blocking() -> None:
    """Raises Django's `SynchronousOnlyOperation` where an event loop runs."""
    _in_loops()
