"""`Reservable`: what a mapped class gains by one more base class."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import ColumnElement
from sqlalchemy.orm import object_session
from sqlalchemy.orm.attributes import instance_state

from reservable.backends.asynchronous import AsyncBackend
from reservable.backends.base import Backend
from reservable.backends.opening import Store
from reservable.config import fixed_store
from reservable.errors import NotSupported
from reservable.handles import Holdings, ReservableRow, Rows
from reservable.sqlalchemy import homes
from reservable.sqlalchemy.expressions import reserved, unreserved
from reservable.sqlalchemy.identity import must_exist, row_of


class MappedRows(Rows):
    """Rows that SQLAlchemy maps."""

    def place(self, instance: Any, key: Any) -> tuple[str, Store]:
        identity, values = row_of(instance)
        session = object_session(instance)
        store = homes.store_of(identity.mapper, session)
        return homes.located(identity, session).name(values, key), store

    def is_adrift(self, instance: Any) -> bool:
        return object_session(instance) is None and fixed_store(type(instance)) is None

    def backend(self, store: Store, instance: Any) -> Backend:
        return homes.backend_on(store, type(instance), object_session(instance))

    def async_backend(self, store: Store, instance: Any) -> AsyncBackend:
        return homes.async_backend_on(store, object_session(instance))

    def holdings(self, instance: Any) -> Holdings:
        return holdings_of(instance)

    def must_exist(self, instance: Any) -> None:
        must_exist(instance)


class Reservable(ReservableRow):
    """A row that one worker at a time can take for one purpose for a while.

    `key` names the purpose: text, an enum member, a class, a function, or an object, which stands for its
    class. `duration` is a lifetime: seconds, "+6 hours", a timedelta, an aware datetime. The session is neither
    committed, rolled back nor flushed, and an instance that was never flushed cannot be reserved
    (`UnidentifiedInstance`).

    A class may set `__reservable_name__` (its part of the names, instead of its table's) and
    `__reservable_backend__` (what `configure` takes).
    """

    __reservable_rows__: ClassVar[Rows] = MappedRows()

    @classmethod
    def reserved(cls, key: Any) -> ColumnElement[bool]:
        """SQL for `where()`: rows that are reserved for this purpose now.

        `NotSupported` while reservations live in a store that is no database.
        """
        return reserved(cls, key)

    @classmethod
    def unreserved(cls, key: Any) -> ColumnElement[bool]:
        """SQL for `where()`: rows that nobody has reserved for this purpose now. As `reserved`."""
        return unreserved(cls, key)


def must_be_reservable(model: type[Any]) -> None:
    """Raises `NotSupported` for a class that could not give back what it is granted."""
    if not issubclass(model, Reservable):
        raise NotSupported(
            f"{model.__name__} is not Reservable: add it to the bases, class {model.__name__}(Reservable, …), so that "
            "what is reserved can be released"
        )


def holdings_of(instance: Any) -> Holdings:
    """What this instance has reserved; lives and dies with it."""
    state = instance_state(instance)
    # copy.copy() gives the copy the state of its original; what is noted there is the original's.
    info = state.info if state.obj() is instance else vars(instance)
    holdings = info.get("_reservable_holdings")
    if holdings is None:
        holdings = info.setdefault("_reservable_holdings", Holdings())
    return holdings  # type: ignore[no-any-return]
