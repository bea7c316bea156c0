"""Interleaved rounds: every contender runs once a round, each round in another order.

So a busy machine slows all of them alike, and the ratios within a round hold. The order is drawn, not turned: in
a turned one each contender would always run behind the same other, and bear what that one leaves behind.
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Contender:
    """One way to do the work."""

    name: str
    run: Callable[[], Any]
    """One operation; a coroutine function, where there is a loop."""
    after: Callable[[Any], None] | None = None
    """Undoes one operation, given what it returned; not timed."""
    rounds: int | None = None
    """Takes part in so many rounds only, for what is very slow."""
    loop: asyncio.AbstractEventLoop | None = None
    """The event loop that the operations run in, one after the other; entering and leaving it is not timed."""


@dataclass(frozen=True)
class Timing:
    """What the rounds of one contender took, in seconds an operation."""

    rounds: tuple[float, ...]
    operations: int

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The lower and the upper one; of fewer than four rounds, the least and the most."""
        if len(self.rounds) < 4:
            return min(self.rounds), max(self.rounds)
        low, _, high = statistics.quantiles(self.rounds, n=4, method="inclusive")
        return low, high


def ratio(ours: Timing, peer: Timing) -> float:
    """How many times as fast as the peer: the median over the rounds in which both took part."""
    return statistics.median(b / a for a, b in zip(ours.rounds, peer.rounds, strict=False))


def interleave(
    contenders: Sequence[Contender], *, rounds: int, operations: int = 1, warm_up: int | None = None
) -> dict[str, Timing]:
    """Time all contenders over the rounds, so many operations a round each; garbage collection waits meanwhile.

    `warm_up` operations come first and are not timed (left out: as many as a round has). A contender with a
    number of rounds of its own is not warmed up: what one of its operations takes is long enough.
    """
    for contender in contenders:
        if contender.rounds is None:
            _round(contender, operations if warm_up is None else warm_up)
    took: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for number in range(rounds):
        gc.collect()
        for contender in random.Random(number).sample(contenders, len(contenders)):
            if contender.rounds is None or number < contender.rounds:
                took[contender.name].append(_round(contender, operations))
    return {name: Timing(tuple(seconds), operations) for name, seconds in took.items()}


def _round(contender: Contender, operations: int) -> float:
    gc.disable()
    try:
        run, clock = contender.run, time.perf_counter
        if contender.loop is not None:
            return contender.loop.run_until_complete(_awaited(run, operations))
        if contender.after is None:
            start = clock()
            for _ in range(operations):
                run()
            return (clock() - start) / operations
        total = 0.0
        for _ in range(operations):
            start = clock()
            result = run()
            total += clock() - start
            contender.after(result)
        return total / operations
    finally:
        gc.enable()


async def _awaited(run: Callable[[], Any], operations: int) -> float:
    start = time.perf_counter()
    for _ in range(operations):
        await run()
    return (time.perf_counter() - start) / operations
