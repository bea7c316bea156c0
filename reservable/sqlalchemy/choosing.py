"""The first of objects that are loaded already."""

from __future__ import annotations

import time
from collections.abc import Iterable
from secrets import token_hex
from typing import Any, TypeVar

from sqlalchemy import inspect
from sqlalchemy.orm import InstanceState, object_session

from reservable.errors import NotSupported
from reservable.finding.search import (
    FIRST_BATCH,
    GROWTH,
    LAST_BATCH,
    TOKEN,
    give_back_unheard,
    over_already,
    purpose,
)
from reservable.sqlalchemy import homes
from reservable.sqlalchemy.colours import Colour, Home
from reservable.sqlalchemy.identity import must_exist, row_of
from reservable.sqlalchemy.mixin import holdings_of, must_be_reservable

T = TypeVar("T")


class Choosing:
    """One call: what for, and by whom."""

    def __init__(self, key: Any, duration: Any, colour: Colour) -> None:
        self._colour = colour
        self._key = key
        self.purpose = purpose(key, duration)

    def first(self, instances: Iterable[T]) -> T | None:
        """The first that is free; names of one store go to it together."""
        if not isinstance(instances, Iterable):
            raise NotSupported(
                f"give the instances in a list or another iterable, not {type(instances).__name__}"
            )
        waiting: list[tuple[str, Any]] = []
        place: Home | None = None
        source: Any = None
        size = FIRST_BATCH
        for instance in instances:
            if not isinstance(inspect(instance, raiseerr=False), InstanceState):
                raise NotSupported(f"give instances of mapped classes, not {type(instance).__name__}")
            must_be_reservable(type(instance))
            must_exist(instance)
            identity, values = row_of(instance)
            home = (identity.mapper, object_session(instance))
            if waiting and (home != source or len(waiting) >= size):
                won = self._first_of(place, waiting)
                if won is not None:
                    return won  # type: ignore[no-any-return]
                waiting, size = [], min(size * GROWTH, LAST_BATCH)
            if home != source:
                source, place = home, self._colour.home(*home)
            waiting.append((homes.located(identity, home[1]).name(values, self._key), instance))
        return self._first_of(place, waiting) if waiting else None

    def _first_of(self, place: Home | None, waiting: list[tuple[str, Any]]) -> Any:
        assert place is not None
        deadline, token = self.purpose.deadline(), token_hex(TOKEN // 2)
        asked = [name for name, _ in waiting]
        grant = self._colour.see_through(
            lambda: place.backend.acquire_first(asked, token, self.purpose.owner, self.purpose.lifetime),
            lambda granted: (
                place.backend.release(granted.name, granted.token)
                if granted is not None
                else give_back_unheard(place.backend, asked, token, self.purpose.owner)
            ),
        )
        if grant is not None and time.monotonic() >= deadline:
            place.backend.release(grant.name, grant.token)
            raise over_already(grant.name, self.purpose)
        for name, instance in waiting:
            handle = place.handle(instance, name, self.purpose)
            if grant is not None and grant.name == name:
                handle.adopt(grant, deadline)
                return instance
            # It has tried and was refused, so it is no bystander who may release another's grant.
            holdings_of(instance).tried(handle)
        return None
