"""Requests that are seen through although their caller was cancelled, so that no grant is left to nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from reservable.errors import ReservableError

T = TypeVar("T")

_running: dict[asyncio.Task[Any], Any] = {}
"""What goes on behind a caller who was cancelled, and what has the end of its loop wait for it."""


async def settled(request: Coroutine[Any, Any, T], undo: Callable[[T | None], Awaitable[Any]]) -> T:
    """The outcome of the request, which runs to its end whatever becomes of the caller.

    When the caller is cancelled meanwhile, the outcome (None when the request failed or was cut off itself, so that
    nobody knows it) is undone: in the background, or before the cancellation goes on when it is there already. A
    request cancelled half-way could not be undone, for nobody can say whether the store has read it. `undo` may be
    called a second time, for the loop's end cancels that, too.
    """
    abandoned = False

    async def see_through() -> T:
        outcome = None
        try:
            outcome = await request
            return outcome
        finally:
            # Also when the loop comes to its end and cancels all that is still running.
            if abandoned:
                await _made(partial(undo, outcome))

    task = asyncio.ensure_future(see_through())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            abandoned = True
            _see_to(task)
            task.add_done_callback(partial(_heard, request))
        else:  # or else cancelled together with the caller
            if task.cancelled():
                request.close()
            known = not task.cancelled() and task.exception() is None
            await asyncio.shield(_behind(partial(undo, task.result() if known else None)))
        raise


async def noted(
    spawn: Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]],
    find: Callable[[], T],
    let_go: Callable[[T], object],
) -> T:
    """What blocking code finds, run by `spawn`; when the caller is cancelled meanwhile, it is let go.

    A thread goes on whatever becomes of the event loop: what it finds is noted there, and let go behind it.
    """
    found: list[T] = []

    def work() -> None:
        found.append(find())

    def give_back() -> None:
        for one in found:
            let_go(one)

    async def undo(_: object) -> None:
        await spawn(give_back)

    await settled(spawn(work), undo)
    return found[0]


async def insisted(request: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The outcome of a request that may be made twice; when the caller is cancelled, it is made again behind him.

    In that way a release costs no task of its own but when it must.
    """
    try:
        return await request()
    except asyncio.CancelledError:
        _behind(request)
        raise


def _behind(request: Callable[[], Awaitable[Any]]) -> asyncio.Task[None]:
    """Have it made in a task of its own, which the end of the loop waits for."""
    task = asyncio.ensure_future(_made(request))
    _see_to(task)

    def begun(_: asyncio.Task[None]) -> None:
        if task.cancelled():  # by the loop's end, before its first step
            _behind(request)

    task.add_done_callback(begun)
    return task


async def _made(request: Callable[[], Awaitable[Any]]) -> None:
    for _ in range(2):
        with suppress(ReservableError, asyncio.CancelledError):  # the loop's end cancels it once
            await request()
            return


def _see_to(task: asyncio.Task[Any]) -> None:
    _running[task] = _until_done(task)
    if not getattr(task.get_loop(), "_asyncgens_shutdown_called", False):  # else it is too late to wait
        with suppress(StopIteration):  # run it up to its yield, here and now
            _running[task].__anext__().send(None)
    task.add_done_callback(_forget)


async def _until_done(task: asyncio.Task[Any]) -> AsyncGenerator[None, None]:
    """The loop closes the generators that it knows when all else is cancelled, and waits for that."""
    try:
        yield
    finally:
        if not task.done():
            await asyncio.wait([task])


def _forget(task: asyncio.Task[Any]) -> None:
    _running.pop(task, None)


def _heard(request: Coroutine[Any, Any, Any], task: asyncio.Task[Any]) -> None:
    """Nobody else asks what went wrong, and asyncio would complain of that; or of a request that never began."""
    if task.cancelled():
        request.close()
    else:
        task.exception()
