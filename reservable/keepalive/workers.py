"""The I/O of the keeper: a thread for each backend, so that one that hangs holds up no other."""

from __future__ import annotations

import logging
import math
import queue
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from typing import Any

from reservable.keepalive.daemons import IDLE, Daemon
from reservable.keepalive.entries import Entry
from reservable.keepalive.rounds import batches, extending
from reservable.plans import Plan, arun, run

log = logging.getLogger("reservable")

THREADS = 3
"""As many are used for one backend when calls hang."""


class Worker:
    """Extends what is kept in one backend; `hand_back` gets the entries when that is done, whatever came of it.

    One thread, as a rule. When a call hangs for as long as a renewal may wait, perhaps on a connection that leads
    nowhere, what is in hand is given to another thread as well, which asks on another connection.

    What is due is the timer's, and of the threads only the timer starts any.
    """

    def __init__(self, backend: Any, hand_back: Callable[[Sequence[Entry]], None]) -> None:
        self.backend = backend
        self._hand_back = hand_back
        self._due: list[tuple[float, int, Entry]] = []
        self._numbers = count()
        self._jobs: queue.SimpleQueue[list[Entry]] = queue.SimpleQueue()
        self._in_hand: set[Entry] = set()
        self._patience = math.inf
        self._stuck_at = math.inf
        self._threads = [self._thread()]

    @property
    def next_at(self) -> float:
        """When it has something to begin."""
        return min(self._due[0][0], self._stuck_at) if self._due else self._stuck_at

    @property
    def idle(self) -> bool:
        return not self._due and self._jobs.empty() and not any(thread.runs for thread in self._threads)

    def plan(self, entry: Entry, due: float) -> None:
        """Have it extended then."""
        if due != entry.due_at:
            entry.due_at = due
            heappush(self._due, (due, next(self._numbers), entry))

    def forget(self, gone: Callable[[Entry], bool]) -> None:
        """Take out what is no longer kept."""
        self._due = sorted(item for item in self._due if not gone(item[2]))

    def begin(self) -> None:
        """Extend what is due, and what will be soon: within a quarter of the first one's period."""
        if self._stuck_at <= time.monotonic():
            self._relieve()
        round_: list[Entry] = []
        soon = time.monotonic()
        while self._due and self._due[0][0] <= soon:
            at, _, entry = heappop(self._due)
            standing = entry.renewable() if at == entry.due_at and not entry.asked else None
            if standing is None:
                continue
            if standing.due > soon:  # extended by somebody else meanwhile
                self.plan(entry, standing.due)
                continue
            if not round_:
                soon += standing.lifetime / 12
                self._patience = standing.lifetime / 3
            entry.due_at, entry.asked = -1.0, True
            round_.append(entry)
        if round_:
            self._in_hand.update(round_)
            self._stuck_at = min(self._stuck_at, time.monotonic() + self._patience)
            self._start(round_)

    def _start(self, entries: list[Entry]) -> None:
        self._jobs.put(entries)
        try:
            self._threads[-1].need()
        except RuntimeError as error:  # too many threads, or the interpreter is about to end
            log.warning("%d reservations cannot be renewed now: %s", len(entries), error)
            self._done(self._jobs.get_nowait())

    def _relieve(self) -> None:
        self._stuck_at = time.monotonic() + self._patience
        self._threads = [thread for thread in self._threads if thread.runs]
        if len(self._threads) < THREADS:
            self._threads.append(self._thread())
            self._start([*self._in_hand])

    def _thread(self) -> Daemon:
        return Daemon("reservable renewal", self._work, lambda: not self._jobs.empty())

    def _work(self) -> None:
        with performing(self.backend) as perform:
            while entries := self._next():
                self._round(entries, perform)

    def _round(self, entries: set[Entry], perform: Callable[[Plan[None]], None]) -> None:
        rest = set(entries)
        try:
            for lifetime, batch in batches(entries):
                if not self._in_hand.isdisjoint(batch):  # else another thread has done it while we were stuck
                    perform(extending(self.backend, lifetime, batch))
                rest.difference_update(batch)
                self._done(batch)
        finally:
            self._done(rest)

    def _done(self, entries: Collection[Entry]) -> None:
        self._in_hand.difference_update(entries)
        self._stuck_at = time.monotonic() + self._patience if self._in_hand else math.inf
        self._hand_back([*entries])

    def _next(self) -> set[Entry]:
        """What is to be extended; nothing when nothing has come for a while."""
        entries: set[Entry] = set()
        try:
            entries.update(self._jobs.get(timeout=IDLE))
            while True:
                entries.update(self._jobs.get_nowait())
        except queue.Empty:
            return entries


@contextmanager
def performing(backend: Any) -> Iterator[Callable[[Plan[None]], None]]:
    """How to perform plans on this backend: on an event loop of this thread's own where it is for asyncio."""
    if not getattr(backend, "asynchronous", False):
        yield lambda plan: run(plan, lambda step: step(backend))
        return
    import asyncio

    with asyncio.Runner() as runner:
        yield lambda plan: runner.run(arun(plan, lambda step: step(backend)))
