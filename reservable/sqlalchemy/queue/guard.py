"""Looks at flushes, for those that write the queue's columns past the queue."""

from __future__ import annotations

from typing import Any

from sqlalchemy import inspect
from sqlalchemy.orm import Session

from reservable.leasing.columns import STATE
from reservable.leasing.guard import tell
from reservable.queue.options import options_of
from reservable.sqlalchemy.queue.columns import QueueColumns


def before_flush(session: Session, *_: Any) -> None:
    """Look at what is about to be written; new rows may begin as they like."""
    for row in session.dirty:
        if isinstance(row, QueueColumns) and options_of(type(row)).guard != "off":
            changed = _changed(row)
            if "lease_token" in changed and inspect(row).persistent:
                # Nobody assigns a token: it is an old copy that was merged, and a token must not come again.
                tell(row, changed, "a flush of an old copy, whose values are left out,", "sqlalchemy")
                session.expire(row, changed)
            else:
                tell(row, changed, "a flush", "sqlalchemy")


def _changed(row: Any) -> list[str]:
    attributes = inspect(row).attrs
    return [name for name in STATE if name in attributes and attributes[name].history.has_changes()]
