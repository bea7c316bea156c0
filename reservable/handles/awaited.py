"""The handle on one reservation, for asyncio."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack, suppress
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from types import TracebackType
from typing import Any, Self, TypeVar

from reservable import durations
from reservable.backends.asynchronous import AsyncBackend
from reservable.cancelling import insisted, settled
from reservable.config import async_backend_for
from reservable.errors import ReservationLost
from reservable.grants import Holder
from reservable.handles.dumped import revived
from reservable.handles.handle import OWN, Ask, Handle, Listen, log
from reservable.handles.tenure import Tenure
from reservable.plans import Plan, arun

T = TypeVar("T")

_callbacks: set[asyncio.Future[Any]] = set()
"""Loops hold their tasks weakly."""


class AsyncReservation(Handle):
    """`Reservation` for asyncio: what asks the store is awaited, everything else is the same.

    A call that is cancelled leaves no grant behind. With `renew=True` it ends with the task that acquired it
    (`asyncio.wait_for` may make one of its own: use `wait=`), and when it is lost the body of its `async with`
    is cancelled and `ReservationLost` comes out, as `TimeoutError` does of `asyncio.timeout`.
    """

    backend: AsyncBackend

    def __init__(self, backend: AsyncBackend | None, name: str, duration: Any = 60, **options: Any) -> None:
        super().__init__(backend, name, duration, **options)
        self._lost: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def lost(self) -> asyncio.Event:
        """Set as soon as anything learns that the reservation is over or was taken while it was ours."""
        if self._lost is None:
            self._lost = asyncio.Event()
        if self._is_lost and _running_loop() in (self._loop, None):
            self._lost.set()  # what another thread has learned, before the loop comes to hear of it
        return self._lost

    async def acquire(self, wait: Any = OWN) -> bool:
        """As `Reservation.acquire`."""
        limit = self._wait if wait is OWN else durations.wait(wait)
        return await self._arun(self.acquiring(limit), waits=bool(limit))

    async def extend(self, duration: Any) -> bool:
        """As `Reservation.extend`."""
        return await self._arun(self.extending(duration))

    async def release(self) -> bool:
        """As `Reservation.release`."""
        return await self._arun(self.releasing())

    async def break_(self) -> bool:
        """As `Reservation.break_`."""
        return await self.backend.break_(self.name)

    async def holder(self) -> Holder | None:
        """As `Reservation.holder`."""
        return await self.backend.holder(self.name)

    async def check(self) -> None:
        """As `Reservation.check`."""
        await self._arun(self.checking())

    @classmethod
    def loads(cls, text: str, backend: Any = None) -> Self:
        """As `Reservation.loads`."""
        return revived(cls, text, lambda: async_backend_for(backend))

    async def __aenter__(self) -> Self:
        block = await self._arun(self.entering(), waits=bool(self._wait))
        if self.renewing:
            self._loop = asyncio.get_running_loop()
            task = asyncio.current_task()
            assert task is not None
            block.task, block.cancelling = task, task.cancelling()
            if (
                block.tenure is not None and block.tenure.lost
            ):  # meanwhile, when there was nothing to cancel yet
                self._leaving()
                raise ReservationLost(f"the reservation {self.name} was over before its block began")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        block = self._leaving()
        if block.task is not None and block.interrupted and block.task.uncancel() <= block.cancelling:
            lost = ReservationLost(f"the reservation {self.name} was lost while its block was running")
            if isinstance(error, asyncio.CancelledError):
                raise lost from error
            if error is None:
                with suppress(asyncio.CancelledError):  # it has ended before our cancellation could arrive
                    await asyncio.sleep(0)
                raise lost
        await self._arun(self.exiting(block, error))

    async def _arun(self, plan: Plan[T], *, waits: bool = False) -> T:
        """As `Reservation._run`."""
        if not waits:
            return await arun(plan, partial(_perform, self.backend))
        async with AsyncExitStack() as opened:
            watch: Any = None

            async def perform(step: Any) -> Any:
                nonlocal watch
                if type(step) is not Listen:
                    return await _perform(self.backend, step)
                if watch is None:
                    watch = await opened.enter_async_context(self.backend.watch(self.name))  # type: ignore[attr-defined]
                return await watch.pause(step.seconds)

            return await arun(plan, perform)

    def _found(self) -> None:
        self._loop = _running_loop()
        if self._lost is not None:
            self._lost.clear()

    def _learn_of_loss(self, tenure: Tenure) -> None:
        loop = self._loop
        if loop is None or loop is _running_loop():
            self._tell_of_loss(tenure)
        else:
            with suppress(RuntimeError):  # it is closed, and nobody is left in it to be told
                loop.call_soon_threadsafe(self._tell_of_loss, tenure)

    def _tell_of_loss(self, tenure: Tenure) -> None:
        if self._lost is not None and self._tenure is tenure:  # else there is a new grant by now
            self._lost.set()
        for block in self._blocks.of(tenure):
            if block.task is not None and block.task is not asyncio.current_task():
                block.interrupted = True
                block.task.cancel()
        if self._on_lost is None:
            return
        if _running_loop() is None:
            self._call_outside(self._on_lost)
            return
        call = asyncio.ensure_future(self._call(self._on_lost))
        _callbacks.add(call)
        call.add_done_callback(_callbacks.discard)

    def _call_outside(self, on_lost: Any) -> None:
        """Of a handle that belongs to no event loop: a plain function is called in a thread of its own."""
        if iscoroutinefunction(on_lost):
            log.error(
                "on_lost of %s is awaited, and there is no event loop that could: it was not called",
                self.name,
            )
            return

        def call() -> None:
            try:
                answer = on_lost(self)
            except Exception:  # noqa: BLE001 - the user's own, whatever it is
                log.exception("on_lost of %s failed", self.name)
                return
            if isawaitable(answer):
                getattr(answer, "close", bool)()  # never to be awaited, and known to be so
                log.error("on_lost of %s is to be awaited, and there is no event loop that could", self.name)

        threading.Thread(target=call, name="reservable on_lost", daemon=True).start()

    async def _call(self, on_lost: Any) -> None:
        try:
            answer = on_lost(self)
            if isawaitable(answer):
                await answer
        except Exception:  # noqa: BLE001 - the user's own, whatever it is
            log.exception("on_lost of %s failed", self.name)


async def arelease(handle: Handle, backend: AsyncBackend) -> bool:
    """Release what a handle of either colour holds, through a backend for asyncio on the same store."""
    return await arun(handle.releasing(), partial(_perform, backend))


async def _perform(backend: AsyncBackend, step: Any) -> Any:
    if type(step) is not Ask:
        return await asyncio.sleep(step.seconds)
    verb = getattr(backend, step.verb)
    if step.insist:
        return await insisted(partial(verb, *step.arguments))
    if step.verb != "acquire":
        return await verb(*step.arguments)
    name, token = step.arguments[:2]
    return await settled(verb(*step.arguments), lambda _: backend.release(name, token))


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
