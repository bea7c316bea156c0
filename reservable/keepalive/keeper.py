"""The timer: when something is due and when it is over. It does no I/O and waits for nobody but the clock.

What the caller does is done without the timer's help where it can be: a grant that is given back before anything
is due costs two entries in a dict and wakes no thread.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import count

from reservable.keepalive.daemons import IDLE, Daemon
from reservable.keepalive.entries import Entry
from reservable.keepalive.kept import Kept
from reservable.keepalive.owners import AtWork, at_work
from reservable.keepalive.workers import Worker

log = logging.getLogger("reservable")

CROWD = 1000
"""How many entries may wait to be looked at, or be kept in mind when they are gone."""


class Keeper:
    """Looks after the grants of one process; `reservable.keepalive` has the one that there is."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._keeping = threading.RLock()  # a signal handler may reserve, too
        self._news: deque[Entry] = deque()
        self._woken = threading.Event()
        self._asleep_until = math.inf
        self._timer = Daemon("reservable keepalive", self._watch, lambda: bool(self._news))
        # The timer's own:
        self._ends: list[tuple[float, int, Entry]] = []
        self._numbers = count()
        self._workers: dict[int, Worker] = {}

    def keep(self, kept: Kept, since: float | None, owner: AtWork | None = None) -> None:
        found = kept.standing()
        if found is None:
            return
        with self._keeping:
            entry = self._entries.get(id(kept))
            if entry is None or not entry.is_of(kept, found[0]):
                entry = self._entries[id(kept)] = Entry(kept, found[0], owner or at_work())
            elif since is not None:
                entry.moved(kept, *found, since)
        self._news.append(entry)
        standing = entry.standing()
        if standing is not None:
            at = standing.due_from(time.monotonic()) if kept.renewing else standing.deadline
            if at < self._asleep_until or len(self._news) > CROWD:
                self._woken.set()
        self._timer.need()

    def let_go(self, kept: Kept, free_at: float | None) -> None:
        entry = self._entries.pop(id(kept), None)
        if entry is not None:
            entry.free_at = free_at
            entry.over = True

    def _hand_back(self, entries: Sequence[Entry]) -> None:
        """A worker is done with them."""
        for entry in entries:
            entry.asked = False
        self._news.extend(entries)
        self._woken.set()

    # What follows runs in the timer's thread.

    def _watch(self) -> None:
        needed_at = time.monotonic()
        while True:
            self._woken.clear()
            self._asleep_until = math.inf  # from here on everything new wakes us
            self._mark_the_lost()
            while self._news:
                self._look(self._news.popleft())
            for worker in self._workers.values():
                worker.begin()
            self._tidy()
            now = time.monotonic()
            needed_at = now if self._entries else needed_at
            if now >= needed_at + IDLE:
                self._workers.clear()
                return
            self._asleep_until = min(self._times(), default=math.inf)
            if not self._news:  # nobody wakes us to say that something was let go
                self._woken.wait(min(IDLE, max(0.0, self._asleep_until - now)))

    def _times(self) -> Iterator[float]:
        """When something is over, or due."""
        yield from (self._ends[0][0],) if self._ends else ()
        yield from (worker.next_at for worker in self._workers.values())

    def _mark_the_lost(self) -> None:
        """Before anything else: this process may have been stopped for longer than a lifetime."""
        while self._ends and self._ends[0][0] <= time.monotonic():
            at, _, entry = heappop(self._ends)
            if at == entry.watched_at:
                entry.watched_at = math.inf
                self._look(entry)

    def _look(self, entry: Entry) -> None:
        """See when the entry is due and when it is over."""
        try:
            if entry.expire():
                self._forget(entry)
                return
            self._plan(entry)
        except Exception:  # an object that breaks its promises must not stop the clock for all others
            log.exception("something that was kept alive failed by itself, and is not kept any more")
            self._forget(entry)

    def _plan(self, entry: Entry) -> None:
        standing = entry.standing()
        if standing is None:
            return
        if standing.deadline < entry.watched_at:  # a later one is seen when this one has come
            entry.watched_at = standing.deadline
            heappush(self._ends, (standing.deadline, next(self._numbers), entry))
        if entry.asked or entry.renewable() is None:
            return
        now = time.monotonic()
        due = entry.again_at if entry.again_at > now else standing.due_from(now)
        self._worker(standing.kept).plan(entry, due)

    def _worker(self, kept: Kept) -> Worker:
        backend = getattr(kept.backend, "apart", kept.backend)  # not one that looks at a caller's session
        worker = self._workers.get(id(backend))
        if worker is None:
            worker = self._workers[id(backend)] = Worker(backend, self._hand_back)
        return worker

    def _forget(self, entry: Entry) -> None:
        with self._keeping:
            if self._entries.get(entry.key) is entry:
                self._entries.pop(entry.key, None)

    def _tidy(self) -> None:
        # Nobody searches a heap for what was let go: it is passed over when its time comes, or all at once.
        if len(self._ends) > 2 * len(self._entries) + CROWD or not self._entries:
            self._ends = sorted(item for item in self._ends if not self._is_gone(item[2]))
            for worker in self._workers.values():
                worker.forget(self._is_gone)
        self._workers = {key: worker for key, worker in self._workers.items() if not worker.idle}

    def _is_gone(self, entry: Entry) -> bool:
        return self._entries.get(entry.key) is not entry
