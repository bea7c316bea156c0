"""The same backend for asyncio: its statements run in Django's thread for blocking code, as Django's own do."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, NoReturn

from asgiref.sync import sync_to_async

from reservable.backends.asynchronous import AsyncPlannedBackend
from reservable.backends.database.verbs import DatabaseVerbs
from reservable.django.backend import DjangoBackend
from reservable.errors import NotSupported
from reservable.plans import Pause


class AsyncDjangoBackend(AsyncPlannedBackend[DatabaseVerbs]):
    """`DjangoBackend` for asyncio: the same table, connections and plans.

    Each statement is run by `sync_to_async(thread_sensitive=True)`, on the connection that Django's asynchronous
    methods use.
    """

    def __init__(self, backend: DjangoBackend) -> None:
        # To be told of a release would take a thread for as long as that takes: waiters ask again.
        super().__init__(
            backend.verbs, prefix=backend.prefix, capabilities=replace(backend.capabilities, tells=False)
        )
        self._backend = backend

    @property
    def apart(self) -> DjangoBackend:
        """The blocking backend that keeps reservations alive in a thread of its own."""
        return self._backend.apart

    def twin(self) -> DjangoBackend:
        """The same reservations for blocking code."""
        return self._backend

    def watch(self, name: str) -> NoReturn:
        """Raises `NotSupported`: who waits asks again."""
        raise NotSupported(
            f"asyncio is not told of the release of {name} in Django's database: waiters ask again"
        )

    async def _perform(self, step: Any) -> Any:
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        return await sync_to_async(self._backend.perform)(step)

    async def close(self) -> None:
        await sync_to_async(self._backend.close)()

    def __repr__(self) -> str:
        return self._backend.described(type(self).__name__)
