"""An asyncio backend in the form of a blocking one, so that both colours pass the same tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

from reservable.testing.colours import LoopThread

COLOURS = ("blocking", "asyncio")


class Blocked:
    """The verbs of an asyncio backend, each done when it returns; threads share its loop."""

    def __init__(self, backend: Any, loop: LoopThread) -> None:
        self.backend = backend
        self._loop = loop

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        method = getattr(self.backend, verb)

        def called(*arguments: Any) -> Any:
            return self._loop.run(method(*arguments))

        return called

    def list(self, pattern: str = "*") -> Iterator[Any]:
        async def collected() -> Any:
            return [holder async for holder in self.backend.list(pattern)]

        return iter(self._loop.run(collected()))

    def watch(self, name: str) -> BlockedWatch:
        return BlockedWatch(self.backend.watch(name), self._loop)

    def __repr__(self) -> str:
        return repr(self.backend)


class BlockedWatch:
    def __init__(self, watch: Any, loop: LoopThread) -> None:
        self._watch = watch
        self._loop = loop

    def pause(self, seconds: float) -> None:
        self._loop.run(self._watch.pause(seconds))

    def __enter__(self) -> Self:
        self._loop.run(self._watch.__aenter__())
        return self

    def __exit__(self, *raised: object) -> None:
        self._loop.run(self._watch.__aexit__(*raised))
