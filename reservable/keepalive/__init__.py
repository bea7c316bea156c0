"""Keeps many grants alive, and marks as lost what is over: one service for the whole process.

    keep(kept)      # on every grant: extended at a third of its lifetime, lost at its end whatever the store does
    let_go(kept)    # before it is released

What is kept ends with its object (only weak references are held), with its owner, a thread or an asyncio task, and
with the process; a forked child has nothing to do with what its parent keeps.
"""

from __future__ import annotations

import os

from reservable.keepalive.keeper import Keeper
from reservable.keepalive.kept import Kept
from reservable.keepalive.owners import AtWork, at_work

__all__ = ["AtWork", "Kept", "at_work", "keep", "let_go"]

_here: dict[str, Keeper] = {}
_parents: list[Keeper] = []
"""Never touched again, and never freed: that could close connections which the parent uses."""


def keep(kept: Kept, since: float | None = None, owner: AtWork | None = None) -> None:
    """Look after the grant that `kept` stands on; nothing when it has none.

    `owner` tells whether whom it is kept for is at work still; left out, that is the task or thread that calls.

    Call it again when the end was moved by somebody else than the keeper. `since` is then the time, by
    `time.monotonic()`, before the request was sent: a renewal may have come in between, and where nobody knows
    which of the two the store did last, the sooner end is believed. An end that is sooner than the next renewal
    would be only holds until that renewal, which comes in time.

    Raises `RuntimeError` when no thread can be started.
    """
    if not _here:
        _here.setdefault("keeper", Keeper())
    _here["keeper"].keep(kept, since, owner)


def let_go(kept: Kept, free_at: float | None = None) -> None:
    """Look after it no longer; call it before its release is asked for.

    A renewal that is on its way is not believed, and undone where it came last: released, or, with `free_at`
    (by `time.monotonic()`), set to run out then. Takes no lock, so a finalizer may call it.
    """
    if _here:
        _here["keeper"].let_go(kept, free_at)


def _in_a_forked_child() -> None:
    _parents.extend(_here.values())
    _here.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_a_forked_child)
