"""Plans: what to do next, as plain generators, without I/O and without a clock of their own.

A plan yields steps and is sent their answers (or thrown their errors); two short loops, one for blocking
code and one for asyncio, perform the steps. So every decision is written once for both colours.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

Plan = Generator[Any, Any, T]
"""A generator of steps that returns a T."""


@dataclass(frozen=True, slots=True)
class Pause:
    """The step that does nothing for a while."""

    seconds: float


def pauses(first: float, ceiling: float) -> Iterator[float]:
    """Random pauses in seconds, without end, that grow from `first` to the ceiling.

    Full jitter, so that processes that collided once do not collide again in step (Brooker, "Exponential
    Backoff And Jitter", AWS Architecture Blog, 2015).
    """
    step = first
    while True:
        yield random.uniform(first / 2, step)  # noqa: S311 - spreads load, protects nothing
        step = min(step * 2, ceiling)


def run(plan: Plan[T], perform: Callable[[Any], Any]) -> T:
    """Perform every step of the plan, here and now, and return what the plan returns."""
    try:
        step = next(plan)
        while True:
            try:
                answer = perform(step)
            except Exception as error:  # the plan decides what an error means; most are let through
                step = plan.throw(error)
            else:
                step = plan.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        plan.close()  # interrupted, it is told so now, and not when somebody drops the traceback


async def arun(plan: Plan[T], perform: Callable[[Any], Awaitable[Any]]) -> T:
    """`run` for asyncio."""
    try:
        step = next(plan)
        while True:
            try:
                answer = await perform(step)
            except Exception as error:  # as in `run`
                step = plan.throw(error)
            else:
                step = plan.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        plan.close()
