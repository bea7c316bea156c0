"""One grant that is looked after: what is known of it, and what may still be believed."""

from __future__ import annotations

import math
import random
import threading
import time
import weakref
from typing import NamedTuple

from reservable.grants import Grant
from reservable.keepalive.kept import Kept
from reservable.keepalive.owners import AtWork


class Standing(NamedTuple):
    """A grant in force; `deadline` on the monotonic clock, `lifetime` in seconds."""

    kept: Kept
    grant: Grant
    deadline: float
    lifetime: float

    @property
    def due(self) -> float:
        """When a third of the lifetime has passed since the last extension."""
        return self.deadline - self.lifetime * 2 / 3

    def due_from(self, now: float) -> float:
        """`due`; where that is past, because somebody set it to less, it holds for a while but not to its end."""
        return self.due if self.due > now else now + (self.deadline - now) / 3


class Extension(NamedTuple):
    """What a renewal brought: the new end by both clocks, and when its answer came."""

    until: int
    deadline: float
    at: float


class Entry:
    """One grant of one object.

    Three threads meet here: the caller, who lets go; the timer, which marks the end; and a worker, which brings
    the store's answer. `over` is set once by whoever is first, and whoever comes later is not believed.
    """

    def __init__(self, kept: Kept, grant: Grant, owner: AtWork) -> None:
        self._kept = weakref.ref(kept)
        self._grant = grant
        self._at_work = owner
        self._deciding = threading.Lock()
        self._last: Extension | None = None
        self.key = id(kept)
        self.over = False
        self.free_at: float | None = None
        self.failures = 0
        """How often renewing it has failed in a row."""
        self.again_at = -math.inf
        """Not asked again before this time."""
        self.watched_at = math.inf
        self.due_at = math.inf
        self.asked = False
        """Whether a worker has it."""

    def is_of(self, kept: Kept, grant: Grant) -> bool:
        return not self.over and self._kept() is kept and self._grant.token == grant.token

    def standing(self) -> Standing | None:
        """The grant, while it is the one in force; keep the answer for a moment only, for it has the object."""
        kept = self._kept()
        found = kept.standing() if kept is not None and not self.over else None
        if kept is None or found is None or found[0].token != self._grant.token:
            return None
        return Standing(kept, *found, kept.lifetime.total_seconds())

    def renewable(self) -> Standing | None:
        """The grant, while it is to be extended and can be."""
        standing = self.standing()
        if standing is None or not standing.kept.renewing or standing.deadline <= time.monotonic():
            return None
        return standing if self._at_work() else None

    def expire(self) -> bool:
        """Mark it lost when its end has come; whether it has ended, one way or the other."""
        with self._deciding:
            standing = self.standing()
            if standing is not None and standing.deadline > time.monotonic():
                return False
            kept = self._end()
        if kept is not None:
            kept.lose(self._grant)
        return True

    def refused(self) -> None:
        """The store says that it is over or taken."""
        with self._deciding:
            kept = self._end()
        if kept is not None:
            kept.lose(self._grant)

    def _end(self) -> Kept | None:
        """Whom to tell of the end: nobody where it was let go, or is told already, or has gone itself."""
        kept = self._kept() if not self.over else None
        self.over = self.over or kept is not None
        return kept

    def extended(self, extension: Extension, before: float) -> None:
        """The store has extended it; when that was asked for, its end was `before`."""
        self.failures = 0
        if extension.deadline <= time.monotonic():  # over before the answer came
            self.refused()
            return
        with self._deciding:
            standing = self.standing()
            if standing is None:  # its object has ended it, or has gone
                self.over = self.over or self._kept() is not None
                return
            self._last = extension
            # Another end than before: somebody else extended it at the same time, and only the store knows who
            # came last. The sooner end is true in any case.
            if standing.deadline == before or extension.deadline < standing.deadline:
                standing.kept.prolong(standing.grant, extension.until, extension.deadline)

    def moved(self, kept: Kept, grant: Grant, deadline: float, since: float) -> None:
        """Its end was moved by a request sent at `since`: the same doubt, when our answer was the earlier one."""
        last = self._last
        if last is not None and last.at >= since and last.deadline < deadline:
            kept.prolong(grant, last.until, last.deadline)

    def failed(self, lifetime: float) -> None:
        """The store did not answer, or not to the question: ask again, with everybody else at another time."""
        self.failures += 1
        self.again_at = time.monotonic() + lifetime / 12 * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load

    def is_nobodys(self) -> bool:
        """Whether an extension that succeeded leaves the name to nobody: it was lost or let go meanwhile."""
        if not self.over or self.free_at is not None:
            return self.over
        kept = self._kept()
        found = kept.standing() if kept is not None else None
        # One that still believes in the grant has the release before it: that will come after the extension.
        return found is None or found[0].token != self._grant.token
