"""Querysets and managers whose rows can be found and reserved in one call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice
from typing import Any, Self, TypeVar

from asgiref.sync import sync_to_async
from django.db import models

from reservable.cancelling import noted
from reservable.django.expressions import is_reserved
from reservable.django.finding import Finding
from reservable.finding.taking import Taken, check_limit
from reservable.handles import release
from reservable.names import plain_name

T = TypeVar("T")


class ReservableQuerySet(models.QuerySet):
    """A queryset that finds free rows and reserves them; chains with everything that yields rows of one model.

    `key` names the purpose: text, an enum member, a class, a function, or an object, which stands for its class, such
    as the `self` of a management command. `duration` is a lifetime: seconds, "+6 hours", a timedelta, an aware
    datetime. Rows come in the queryset's own order (by primary key where it has none), with the values they had at
    the grant. `row.release(key)` gives back exactly that grant.

    All of them raise `NotSupported`, naming the clause, for `values()`, unions, aggregates and
    `select_for_update()`, `InvalidKey`, `InvalidDuration`, and `BackendError` when the store fails (never None).
    """

    def first_reserved(self, key: Any, duration: Any = 60) -> Any:
        """The first row that nobody has reserved for this purpose, reserved; None when there is none.

        It is read again once it is reserved: a row that no longer matches is given back, and the search goes on.
        """
        taken = Finding(self, key, duration).take(1)
        return taken[0].instance if taken else None

    def take_reserved(self, key: Any, duration: Any = 60, *, limit: int) -> list[Any]:
        """Up to `limit` free rows, reserved, each by a grant of its own; fewer only when no more are free."""
        check_limit(limit)
        return [taken.instance for taken in Finding(self, key, duration).take(limit)]

    def each_reserved(self, key: Any, duration: Any = 60) -> Iterator[Any]:
        """One free row after the other, each reserved when it is yielded, until none is left.

        Holds nothing but what it has yielded, and leaves the releasing to the caller; never yields a row twice.
        """
        return Finding(self, key, duration).each()

    async def afirst_reserved(self, key: Any, duration: Any = 60) -> Any:
        """`first_reserved` for asyncio. Cancelled, it leaves no row reserved."""
        taken = await self._taken(key, duration, 1)
        return taken[0].instance if taken else None

    async def atake_reserved(self, key: Any, duration: Any = 60, *, limit: int) -> list[Any]:
        """`take_reserved` for asyncio. Cancelled, it leaves no row reserved."""
        check_limit(limit)
        return [taken.instance for taken in await self._taken(key, duration, limit)]

    async def aeach_reserved(self, key: Any, duration: Any = 60) -> AsyncIterator[Any]:
        """`each_reserved` for asyncio, for `async for`."""
        rows = (await sync_to_async(Finding)(self, key, duration)).each()

        def let_go(found: list[Any]) -> None:
            for row in found:
                row.release(key)

        while following := await noted(_spawned, lambda: [*islice(rows, 1)], let_go):
            yield following[0]

    def reserved(self, key: Any) -> Self:
        """The rows that are reserved for this purpose now; asked where they are written, never a replica.

        `NotSupported` while reservations live outside the database of this queryset.
        """
        found: Self = self.filter(is_reserved(self, plain_name(key)))
        found._for_write = True
        return found

    def unreserved(self, key: Any) -> Self:
        """The rows that nobody has reserved for this purpose now. As `reserved`."""
        found: Self = self.exclude(is_reserved(self, plain_name(key)))
        found._for_write = True
        return found

    async def _taken(self, key: Any, duration: Any, limit: int) -> list[Taken]:
        def let_go(found: list[Taken]) -> None:
            for taken in found:
                release(taken.handle, taken.handle.backend)

        return await noted(_spawned, lambda: Finding(self, key, duration).take(limit), let_go)


_Manager: Any = models.Manager.from_queryset(ReservableQuerySet)


class ReservableManager(_Manager):
    """A manager with the methods of `ReservableQuerySet`."""


async def _spawned(work: Callable[[], T]) -> T:
    """What blocking code returns, in Django's thread for it."""
    return await sync_to_async(work)()
