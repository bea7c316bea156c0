"""What tells an idle worker that there may be something to do: PostgreSQL, where the queue has `notify`.

A bell that nothing rings is silent, and whoever waits for it just waits.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from sqlalchemy.util import greenlet_spawn

from reservable.backends.database.listening import Refused, ears, listening
from reservable.backends.database.watches import RECOVERY, opened
from reservable.backends.watching import LONGEST, REFUSED
from reservable.leasing.desk import Desk
from reservable.leasing.telling import channel_of

log = logging.getLogger("reservable")


def _nobody() -> None:
    pass


class Ears:
    """How the bells of one queue in one database come to hear."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.name = desk.queue.entity.__name__

    @property
    def can_hear(self) -> bool:
        dialect = self._desk.dialect
        return (
            self._desk.queue.options.notify
            and dialect.name == "postgresql"
            and dialect.driver in ears(dialect.is_async)
        )

    @property
    def can_await(self) -> bool:
        """Whether an event loop can be told."""
        return self.can_hear and self._desk.asynchronous

    def open(self) -> Any:
        """An ear that has begun to listen; raises the driver's errors, and `Refused`."""
        connections = self._desk.connections
        assert connections is not None, "a database in memory has no others"
        return listening(connections, channel_of(self._desk.queue.table))

    def rest(self, error: Exception) -> float:
        """Seconds after which to listen again."""
        log.warning("%s: workers are not woken until PostgreSQL can be listened to: %s", self.name, error)
        return REFUSED if isinstance(error, Refused) else RECOVERY


class Bell:
    """For threads. It rings too when it has begun to hear: nobody knows what was told before."""

    def __init__(self, desk: Desk, wake: Callable[[], object] = _nobody) -> None:
        self._ears = Ears(desk)
        self._wake = wake
        self._rung = threading.Event()
        self._closed = threading.Event()
        self._ear: Any = None

    @property
    def has_rung(self) -> bool:
        return self._rung.is_set()

    def still(self) -> None:
        """Forget that it has rung: before looking what there is to do."""
        self._rung.clear()

    def wait(self, seconds: float) -> bool:
        """Whether it has rung, within these seconds."""
        return self._rung.wait(seconds)

    def __enter__(self) -> Self:
        if self._ears.can_hear:
            threading.Thread(target=self._hear, daemon=True, name="reservable-bell").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        ear = self._ear
        if ear is not None:
            with suppress(Exception):
                ear.hang_up()  # so that its thread, which reads it, comes to its end

    def _ring(self) -> None:
        self._rung.set()
        self._wake()

    def _hear(self) -> None:
        while not self._closed.is_set():
            ear = None
            try:
                self._ear = ear = self._ears.open()
                self._ring()
                while not self._closed.is_set():
                    ear.hear(LONGEST)
                    if ear.has_heard:
                        ear.forget()
                        self._ring()
                    else:
                        ear.is_pooled()  # whether anybody is still there
            except Exception as error:  # noqa: BLE001 - whatever it is, a worker can do without
                if not self._closed.is_set():
                    self._closed.wait(self._ears.rest(error))
            finally:
                self._ear = None
                if ear is not None:
                    ear.close()


class AsyncBell:
    """`Bell` for the tasks of one event loop."""

    def __init__(self, desk: Desk, wake: Callable[[], object] = _nobody) -> None:
        self._ears = Ears(desk)
        self._wake = wake
        self._rung = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def has_rung(self) -> bool:
        return self._rung.is_set()

    def still(self) -> None:
        """As `Bell.still`."""
        self._rung.clear()

    async def wait(self, seconds: float) -> bool:
        """As `Bell.wait`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        return self.has_rung

    async def __aenter__(self) -> Self:
        if self._ears.can_await:
            self._task = asyncio.create_task(self._hear())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _ring(self) -> None:
        self._rung.set()
        self._wake()

    async def _hear(self) -> None:
        while True:
            ear = None
            try:
                ear = await opened(self._ears.open)
                self._ring()
                while True:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LONGEST):
                            await ear.heard()
                    if ear.has_heard:
                        ear.forget()
                        self._ring()
                    else:
                        await greenlet_spawn(ear.is_pooled)  # whether anybody is still there
            except Exception as error:  # noqa: BLE001 - as above
                await asyncio.sleep(self._ears.rest(error))
            finally:
                if ear is not None:
                    ear.close()
