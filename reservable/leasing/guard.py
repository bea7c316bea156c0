"""Tells of writes to the queue's columns past the queue: they would take a row from its worker."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from reservable.queue.options import options_of


class QueueColumnWarning(UserWarning):
    """A write changes the status, the lease or another of the queue's own columns of a row that exists."""


def tell(row: Any, changed: Sequence[str], what: str, orm: str) -> None:
    """Say that a write (`what`) changes these columns; the caller is whoever is not of the package `orm` or ours.

    Raises `QueueColumnWarning` where the queue's `guard` is to raise.
    """
    guard = options_of(type(row)).guard
    if not changed or guard == "off":
        return
    text = (
        f"{what} changes {', '.join(changed)} of a {type(row).__name__}: these columns change by the verbs of "
        "the queue (enqueue, pause, resume, cancel, retry, and those of a lease)"
    )
    if guard == "raise":
        raise QueueColumnWarning(text)
    _warn(text, _places(orm, "reservable"))


def _places(*packages: str) -> tuple[str, ...]:
    folders = (Path(str(sys.modules[name].__file__)).parent for name in packages)
    return (
        "<sqlalchemy ",
        *(f"{folder}{os.sep}" for folder in folders),
    )  # the first is what it writes at run time


def _warn(text: str, not_the_callers: tuple[str, ...]) -> None:
    frame = _callers_frame(not_the_callers)
    if frame is None:
        warnings.warn(text, QueueColumnWarning, stacklevel=2)
        return
    warnings.warn_explicit(
        text,
        QueueColumnWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _callers_frame(not_the_callers: tuple[str, ...]) -> FrameType | None:
    """The first frame that is neither ours nor the ORM's; beyond a greenlet too, where a stack ends."""
    greenlet: Any = sys.modules.get("greenlet")
    here = greenlet.getcurrent() if greenlet is not None else None
    frame: FrameType | None = sys._getframe(1)
    while True:
        while frame is not None and frame.f_code.co_filename.startswith(not_the_callers):
            frame = frame.f_back
        here = here.parent if here is not None else None
        if frame is not None or here is None:
            return frame
        frame = here.gr_frame
