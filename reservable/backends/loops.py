"""What is kept for each event loop, and given up with it.

A connection of asyncio belongs to one loop for good, and a backend is used from many: `asyncio.run` twice, a loop
in every thread, a new one for each call of a bridge such as asgiref's.
"""

from __future__ import annotations

import asyncio
import weakref
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager, suppress
from os import getpid
from typing import Any, Generic, NamedTuple, Protocol, TypeVar


class Kept(Protocol):
    """What is kept for one loop."""

    async def close(self) -> None:
        """Close the connections, in their loop."""

    def bury(self) -> None:
        """Close the connections of a loop that is closed or stands still, from anywhere."""


K = TypeVar("K", bound=Kept)


class Entry(NamedTuple, Generic[K]):
    """`until` is a generator that waits in the loop for its end, and then closes what is kept.

    asyncio tells generators of its end, and nobody else (`shutdown_asyncgens`).
    """

    kept: K
    until: AsyncGenerator[None, None] | None
    pid: int


class PerLoop(Generic[K]):
    """One `K` for each event loop, made when the loop first asks for it."""

    def __init__(self, make: Callable[[], K]) -> None:
        self._make = make
        # The loop itself is the key: ids repeat. Its entry goes when it ends, or else when the next loop comes.
        self._entries: dict[AbstractEventLoop, Entry[K]] = {}
        # Not __del__: that is called together with those of the connections, which complain.
        weakref.finalize(self, _give_up, self._entries)

    def get(self) -> K:
        """The one of the running loop."""
        entry = self._entries.get(asyncio.get_running_loop())
        if entry is not None and entry.pid == getpid():
            return entry.kept
        return self._begin(asyncio.get_running_loop())

    async def close(self) -> None:
        """Close what is kept, for this loop at once, for loops in other threads as soon as they come to it."""
        entries = {}
        for loop in [*self._entries]:
            entry = self._entries.pop(loop, None)  # another thread may be at it too
            if entry is not None:
                entries[loop] = entry
        own = entries.pop(asyncio.get_running_loop(), None)
        _give_up(entries)
        if own is not None and own.pid == getpid():
            await (own.until.aclose() if own.until is not None else own.kept.close())

    def give_up(self) -> None:
        """`close` from where nothing can be awaited: every loop closes its own as soon as it comes to it."""
        _give_up(self._entries)

    def _begin(self, loop: AbstractEventLoop) -> K:
        kept = self._make()
        until = None
        if not getattr(loop, "_asyncgens_shutdown_called", False):  # else it is too late to wait for the end
            until = _until_the_end(kept, self._entries, loop)
            with suppress(StopIteration):  # run it up to its yield, here and now
                until.__anext__().send(None)
        self._forget_the_dead()
        self._entries[loop] = Entry(kept, until, getpid())
        return kept

    def _forget_the_dead(self) -> None:
        for loop, entry in [*self._entries.items()]:
            inherited = entry.pid != getpid()
            if (inherited or loop.is_closed()) and self._entries.pop(loop, None) is entry:
                if inherited:
                    _PARENTS.append(entry)
                else:
                    entry.kept.bury()


_PARENTS: list[Any] = []
"""Inherited by a forked child and never touched again: closing would take them out of the parent's own selector."""


async def _until_the_end(
    kept: Kept, entries: dict[Any, Any], loop: AbstractEventLoop
) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        if loop in entries and entries[loop].kept is kept:
            del entries[loop]
        await kept.close()


def _give_up(entries: dict[AbstractEventLoop, Entry[Any]]) -> None:
    for loop, entry in [*entries.items()]:
        if entry.pid != getpid():
            _PARENTS.append(entry)
        elif loop.is_closed() or not loop.is_running() or entry.until is None:
            entry.kept.bury()
        elif loop is asyncio._get_running_loop():
            # Now: in the loop's next turn it may be at its end, and at the generator itself.
            _start(entry.until)
        else:
            with suppress(RuntimeError):  # it was closed at this very moment, having told the generator
                loop.call_soon_threadsafe(_start, entry.until)
    entries.clear()


def _start(until: AsyncGenerator[None, None]) -> None:
    task = asyncio.ensure_future(until.aclose())
    _CLOSING.add(task)
    task.add_done_callback(_CLOSING.discard)


_CLOSING: set[Any] = set()
"""Loops hold their tasks weakly."""


def bury(connection: Any) -> None:
    """Close a connection on asyncio's streams, of redis-py or aiomysql, whose loop cannot do it any more."""
    writer = getattr(connection, "_writer", None)
    if writer is None:
        return
    connection._reader = connection._writer = None
    with buried(writer.transport):
        pass


@contextmanager
def buried(transport: Any) -> Iterator[None]:
    """Close a transport whose loop cannot do it any more, after what is done here."""
    inner = getattr(getattr(transport, "_ssl_protocol", None), "_transport", transport)
    end = getattr(inner, "_call_connection_lost", None)  # what closing has the loop call
    if end is not None:
        inner._call_connection_lost = _nothing  # the loop may only stand still, and call it when it goes on
    with suppress(RuntimeError):  # "Event loop is closed"
        yield
    with suppress(RuntimeError):
        transport.close()
    if end is not None and getattr(inner, "_sock", None) is not None:
        with suppress(RuntimeError):
            end(None)


def _nothing(_: Exception | None) -> None:
    """Done already."""
