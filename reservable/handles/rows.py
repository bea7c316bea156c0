"""What a row can do for itself, whichever ORM it is of: the verbs of the mixins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, Unpack

from reservable.backends.asynchronous import AsyncBackend
from reservable.backends.base import Backend
from reservable.backends.opening import Store
from reservable.config import owner_label
from reservable.handles.awaited import AsyncReservation, arelease
from reservable.handles.blocking import Reservation, release
from reservable.handles.handle import Handle
from reservable.handles.holdings import Holdings
from reservable.handles.options import Options
from reservable.names import plain_name

H = TypeVar("H", bound=Handle)


class Rows(ABC):
    """What one ORM knows of its instances."""

    @abstractmethod
    def place(self, instance: Any, key: Any) -> tuple[str, Store]:
        """What the reservation of the row as it is now is called, and where it lives.

        Raises `UnidentifiedInstance`, `InvalidKey`, `ConfigurationError`.
        """

    def is_adrift(self, instance: Any) -> bool:  # noqa: ARG002 - most know it of the class
        """Whether nothing but a grant that it has tells where reservations of this instance live."""
        return False

    @abstractmethod
    def backend(self, store: Store, instance: Any) -> Backend:
        """The backend on this store for blocking code."""

    @abstractmethod
    def async_backend(self, store: Store, instance: Any) -> AsyncBackend:
        """The backend on this store for asyncio."""

    @abstractmethod
    def holdings(self, instance: Any) -> Holdings:
        """What this instance has reserved; lives and dies with it."""

    def must_exist(self, instance: Any) -> None:  # noqa: B027 - not every ORM knows of a deleted row
        """Raises `UnidentifiedInstance` for a row that is known to be deleted."""

    def must_be_blocking(self) -> None:  # noqa: B027 - not every ORM minds
        """Raises where blocking code must not be called."""

    def handle(
        self, instance: Any, key: Any, duration: Any = 60, *, tries: bool = False, **options: Any
    ) -> Reservation:
        """A new handle for blocking code, of which the instance keeps account."""
        return self._made(Reservation, self.backend, instance, key, duration, tries=tries, options=options)

    def async_handle(
        self, instance: Any, key: Any, duration: Any = 60, *, tries: bool = False, **options: Any
    ) -> AsyncReservation:
        """A new handle for asyncio, of which the instance keeps account."""
        return self._made(
            AsyncReservation, self.async_backend, instance, key, duration, tries=tries, options=options
        )

    def to_release(self, instance: Any, key: Any) -> tuple[Handle | None, bool]:
        """The grant that is ours to give back; if there is none, whether this is an operator who breaks anybody's."""
        holdings, purpose = self.holdings(instance), plain_name(key)
        return holdings.to_release(purpose), not holdings.has_tried(purpose)

    def on_grant(self, instance: Any, key: Any, kind: type[H], duration: Any, options: Options) -> H | None:
        """The handle on the grant that the instance holds; None when it holds none."""
        held = self.holdings(instance).holding(plain_name(key))
        if not isinstance(held, kind):
            return None
        held.take_over(kind(None, held.name, duration, **options))
        if options.get("renew"):
            held.keep_alive(duration, options.get("on_lost"))
        return held

    def new(self, make: Callable[..., H], instance: Any, key: Any, duration: Any, options: Options) -> H:
        """A handle of its own, or on the grant that a handle of the other colour holds."""
        self.must_exist(instance)
        handle = make(instance, key, duration, **options)
        held = self.holdings(instance).holding(handle.name)
        if held is not None:
            handle.share(held)
        return handle

    def _named(self, instance: Any, key: Any) -> tuple[str, Store]:
        """The name of the reservation, and where it lives: of the grant that stands there, else of the row as it is now."""
        held = self.holdings(instance).holding(plain_name(key))
        if held is not None and self.is_adrift(instance):
            return held.name, held.store
        name, store = self.place(instance, key)
        return (held.name if held is not None and held.store is store else name), store

    def _made(
        self,
        kind: Callable[..., H],
        backend_on: Callable[[Store, Any], Any],
        instance: Any,
        key: Any,
        duration: Any,
        *,
        tries: bool,
        options: dict[str, Any],
    ) -> H:
        name, store = self._named(instance, key)
        backend, ledger = backend_on(store, instance), self.holdings(instance)
        if tries:
            # From here on the instance is no operator, whatever becomes of the attempt.
            ledger.trying(name)
            self.must_exist(instance)
        handle = kind(backend, name, duration, owner=owner_label(), ledger=ledger, **options)
        handle.store = store
        return handle


class ReservableRow:
    """The verbs of a row. `key` names the purpose: text, an enum member, a class, a function, or an object, which
    stands for its class. `duration` is a lifetime: seconds, "+6 hours", a timedelta, an aware datetime.
    """

    __reservable_rows__: ClassVar[Rows]
    """The `Rows` of this class's ORM."""

    def reserve(self, key: Any, duration: Any = 60, *, wait: Any = None) -> bool:
        """Take the row for this purpose: True when granted, False when somebody holds it.

        `wait`: how long to keep trying (seconds or any duration; None: one try). What this instance holds already
        is refused too, and not disturbed.

        Raises `InvalidKey`, `InvalidDuration`, `UnidentifiedInstance`, and `BackendError` when the store fails.
        """
        rows: Rows = self.__reservable_rows__
        rows.must_be_blocking()
        return rows.handle(self, key, duration, tries=True, wait=wait).acquire()

    async def areserve(self, key: Any, duration: Any = 60, *, wait: Any = None) -> bool:
        """`reserve` for asyncio. Cancelled, it leaves no grant behind."""
        rows: Rows = self.__reservable_rows__
        return await rows.async_handle(self, key, duration, tries=True, wait=wait).acquire()

    def release(self, key: Any) -> bool:
        """Give the row back; True when something was released.

        An instance that has tried to reserve the key gives back its own grant and nothing else, so
        `finally: video.release(key)` is always safe: also when its session is closed by then, or its primary
        key another. One that never tried is an operator's: it releases whoever holds the key.
        """
        rows: Rows = self.__reservable_rows__
        rows.must_be_blocking()
        mine, is_operator = rows.to_release(self, key)
        if isinstance(mine, Reservation):
            return mine.release()
        if mine is not None:
            return release(mine, rows.backend(mine.store, self))
        return is_operator and rows.handle(self, key).break_()

    async def arelease(self, key: Any) -> bool:
        """`release` for asyncio."""
        rows: Rows = self.__reservable_rows__
        mine, is_operator = rows.to_release(self, key)
        if isinstance(mine, AsyncReservation):
            return await mine.release()
        if mine is not None:
            return await arelease(mine, rows.async_backend(mine.store, self))
        return is_operator and await rows.async_handle(self, key).break_()

    def is_reserved(self, key: Any) -> bool:
        """Whether anybody holds the row for this purpose now: a pure read."""
        rows: Rows = self.__reservable_rows__
        rows.must_be_blocking()
        return rows.handle(self, key).holder() is not None

    async def ais_reserved(self, key: Any) -> bool:
        """`is_reserved` for asyncio."""
        rows: Rows = self.__reservable_rows__
        return await rows.async_handle(self, key).holder() is not None

    def reservation(self, key: Any, duration: Any = 60, **options: Unpack[Options]) -> Reservation:
        """A handle, for `with` blocks and for everything beyond reserve and release.

        In a `with` block: `AlreadyReserved` when refused; releases at the end. `options` are those of
        `reservable.handles.Options`: `wait`, `renew`, `on_error`, `on_lost`, `at_least`. While this instance holds
        the key: the handle on that grant, which `renew=True` keeps alive from now on.
        """
        rows: Rows = self.__reservable_rows__
        rows.must_be_blocking()
        held = rows.on_grant(self, key, Reservation, duration, options)
        return held if held is not None else rows.new(rows.handle, self, key, duration, options)

    def areservation(self, key: Any, duration: Any = 60, **options: Unpack[Options]) -> AsyncReservation:
        """`reservation` for asyncio, for `async with`; nothing to await until the handle is used."""
        rows: Rows = self.__reservable_rows__
        held = rows.on_grant(self, key, AsyncReservation, duration, options)
        return held if held is not None else rows.new(rows.async_handle, self, key, duration, options)
