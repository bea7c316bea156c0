"""The wire over a cluster client of asyncio."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from reservable.backends.loops import PerLoop, bury
from reservable.backends.redis.cluster import (
    RAW,
    Send,
    calling,
    explained,
    introducing,
    looking,
    scanning,
)
from reservable.backends.redis.commands import LOST, TROUBLE
from reservable.backends.redis.failures import broken
from reservable.backends.redis.steps import Call, Look, Scan
from reservable.plans import Plan, arun

if TYPE_CHECKING:
    from reservable.backends.redis.clients import Place


class AsyncClusterWire:
    """A cluster, with a client of our own for each event loop."""

    def __init__(self, make: Callable[[], Any], place: Place) -> None:
        self.place = place
        self._secrets = place.secrets
        self._loops = PerLoop(lambda: Client(make()))

    async def call(self, step: Call) -> Any:
        return await self._guarded(calling, step)

    async def scan(self, step: Scan) -> tuple[list[bytes], Any]:
        return await self._guarded(scanning, step)  # type: ignore[no-any-return]

    async def look(self, step: Look) -> list[bytes | None]:
        return await self._guarded(looking, step)  # type: ignore[no-any-return]

    async def info(self) -> dict[str, str]:
        return await self._guarded(introducing, None)  # type: ignore[no-any-return]

    def listener(self, key: bytes) -> Any:
        node = self._loops.get().client.get_node_from_key(key)
        settings = {k: v for k, v in node.connection_kwargs.items() if k != "maint_notifications_config"}
        return node.connection_class(**settings | {"protocol": 3})

    async def close(self) -> None:
        await self._loops.close()

    async def _guarded(self, plan: Callable[[Any, Any], Plan[Any]], step: Any) -> Any:
        client = self._loops.get().client
        try:
            await client.initialize()
        except TROUBLE as error:
            failure: Exception = broken(error, self._secrets)
        else:
            try:
                return await arun(plan(client, step), partial(_perform, client))
            except TROUBLE as error:
                failure = explained(error, self._secrets)
        raise failure


async def _perform(client: Any, step: Any) -> Any:
    if isinstance(step, Send):
        return await client.execute_command(*step.command, target_nodes=step.node, **RAW)
    async with client.pipeline() as pipe:
        for command in step.commands:
            pipe.execute_command(*command, **RAW)
        return await pipe.execute()


class Client:
    """The client of one event loop."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def close(self) -> None:
        with suppress(*LOST):
            await self.client.aclose()
        for kind in ("nodes_cache", "startup_nodes"):  # left open where the map of slots is to be read again
            with suppress(*LOST):
                await self.client.nodes_manager.aclose(kind)

    def bury(self) -> None:
        manager = self.client.nodes_manager
        for node in chain(manager.nodes_cache.values(), manager.startup_nodes.values()):
            for connection in node._connections:
                bury(connection)
        self.client._initialize = True  # what it says of itself when it is closed
