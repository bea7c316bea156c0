"""An asyncio backend in the form of a blocking one, so that both colours pass the same tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from datetime import timedelta
from threading import Lock, Thread
from typing import Any, Self, TypeVar

from reservable.backends.asynchronous import AsyncBackend
from reservable.backends.base import Backend, Capabilities
from reservable.grants import Grant, Holder, Released

T = TypeVar("T")


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work returns or raises, from any other thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def close(self) -> None:
        """End the loop as `asyncio.run` does."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.get_loop().run_forever()


def blocking(backend: AsyncBackend) -> Backend:
    """The asyncio backend as a blocking one: every verb is done when it returns, and threads share its event loop.

    The loop runs in a thread of its own, from the first verb until `close`, which closes the backend too; a verb
    after that starts the next one.
    """
    return _Blocking(backend)


class _Blocking:
    def __init__(self, backend: AsyncBackend) -> None:
        self._backend = backend
        self._loop: LoopThread | None = None
        self._starting = Lock()

    @property
    def prefix(self) -> str:
        return self._backend.prefix

    @property
    def capabilities(self) -> Capabilities:
        return self._backend.capabilities

    def acquire(self, name: str, token: str, owner: str, lifetime: timedelta) -> Grant | None:
        return self._run(self._backend.acquire(name, token, owner, lifetime))

    def acquire_first(
        self, names: Sequence[str], token: str, owner: str, lifetime: timedelta
    ) -> Grant | None:
        return self._run(self._backend.acquire_first(names, token, owner, lifetime))

    def release(self, name: str, token: str) -> Released:
        return self._run(self._backend.release(name, token))

    def extend(self, name: str, token: str, lifetime: timedelta) -> int | None:
        return self._run(self._backend.extend(name, token, lifetime))

    def extend_many(self, held: Sequence[tuple[str, str]], lifetime: timedelta) -> dict[str, int]:
        many = getattr(self._backend, "extend_many", None)
        if many is not None:
            return self._run(many(held, lifetime))
        ends = ((name, self.extend(name, token, lifetime)) for name, token in held)
        return {name: until for name, until in ends if until is not None}

    def holder(self, name: str) -> Holder | None:
        return self._run(self._backend.holder(name))

    def break_(self, name: str) -> bool:
        return self._run(self._backend.break_(name))

    def watch(self, name: str) -> Any:
        return _Watch(self._backend.watch(name), self._run)  # type: ignore[attr-defined]

    def list(self, pattern: str = "*") -> Iterator[Holder]:
        return iter(self._run(_collected(self._backend.list(pattern))))

    def prune(self) -> int:
        return self._run(self._backend.prune())

    def close(self) -> None:
        self._run(self._backend.close())
        with self._starting:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._starting:
            if self._loop is None:
                self._loop = LoopThread()
            loop = self._loop
        return loop.run(work)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)  # what this backend has beyond the protocol, such as its table

    def __repr__(self) -> str:
        return repr(self._backend)


class _Watch:
    """A watch of asyncio's, awaited on the loop of its backend."""

    def __init__(self, watch: Any, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._watch = watch
        self._run = run

    def pause(self, seconds: float) -> None:
        self._run(self._watch.pause(seconds))

    def __enter__(self) -> Self:
        self._run(self._watch.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self._run(self._watch.__aexit__(*error))


async def _collected(holders: AsyncIterator[Holder]) -> list[Holder]:
    return [holder async for holder in holders]
