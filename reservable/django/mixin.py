"""`Reservable`: what a Django model gains by one more base class."""

from __future__ import annotations

from typing import Any, ClassVar
from weakref import ref

from django.db.models.signals import class_prepared

from reservable.backends.asynchronous import AsyncBackend
from reservable.backends.base import Backend
from reservable.backends.opening import Store
from reservable.django.blocking import must_be_blocking
from reservable.django.homes import store_of
from reservable.django.identity import identity_of
from reservable.django.preparing import prepare
from reservable.errors import UnidentifiedInstance
from reservable.handles import Holdings, ReservableRow, Rows
from reservable.names import plain_name


class Account(Holdings):
    """What one instance has reserved, and which row it was then: `delete()` takes the primary key from it."""

    def __init__(self, instance: Any) -> None:
        super().__init__()
        self.owner = ref(instance)
        self.row: str | None = None

    def must_be_blocking(self) -> None:
        must_be_blocking()


class ModelRows(Rows):
    """Rows of Django's models."""

    def place(self, instance: Any, key: Any) -> tuple[str, Store]:
        identity, account = identity_of(type(instance)), account_of(instance)
        values = identity.values(instance)
        if None in values and account.row is not None:
            row = account.row
        else:
            row = account.row = identity.row(values)
        return f"{row}:{plain_name(key)}", store_of(type(instance))

    def backend(self, store: Store, instance: Any) -> Backend:
        return store.blocking

    def async_backend(self, store: Store, instance: Any) -> AsyncBackend:
        return store.awaited

    def holdings(self, instance: Any) -> Holdings:
        return account_of(instance)

    def must_exist(self, instance: Any) -> None:
        identity = identity_of(type(instance))
        if None in identity.values(instance):
            raise UnidentifiedInstance(
                f"this {type(instance).__name__} has no complete primary key, or was deleted: save it first"
            )

    def must_be_blocking(self) -> None:
        must_be_blocking()


class Reservable(ReservableRow):
    """A row that one worker at a time can take for one purpose for a while.

        class Video(Reservable, models.Model): ...

    Adds no fields. A model without a manager of its own gets a `ReservableManager` as `objects`. A transaction that
    is open is neither used nor waited for, so a rollback does not take a reservation back: release it. The calls for
    blocking code raise Django's `SynchronousOnlyOperation` where an event loop runs, before anything is asked.

    A class may set `__reservable_name__` (its part of the names, instead of "app.model") and
    `__reservable_backend__` (what `configure` takes).
    """

    __reservable_rows__: ClassVar[Rows] = ModelRows()


# As users import it, for their migrations name the bases of a model.
Reservable.__module__ = "reservable.django"


def account_of(instance: Any) -> Account:
    """What this instance has reserved; lives and dies with it, and its copies have none."""
    state = vars(instance._state)
    account = state.get("_reservable_account")
    if not isinstance(account, Account) or account.owner() is not instance:
        account = state["_reservable_account"] = Account(instance)
    return account


class_prepared.connect(prepare)
