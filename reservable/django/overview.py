"""All that is reserved, in every store that the project uses, for people to look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

from reservable.backends.opening import Store
from reservable.config import store_for
from reservable.django import settings as project
from reservable.django.homes import store_of
from reservable.django.named import models_by_name, reservable_models
from reservable.errors import ReservableError
from reservable.grants import Holder
from reservable.names import decode, pk_parts, split


@dataclass(frozen=True)
class Entry:
    """One reservation that stands, as its store told of it. It has no token: stores tell nobody."""

    holder: Holder
    store: Store = field(repr=False)

    @property
    def name(self) -> str:
        return self.holder.name

    @property
    def owner(self) -> str:
        return self.holder.owner

    @property
    def shown_as(self) -> str:
        """Fence and name: this grant, and no other of the same name."""
        return f"{self.holder.fence} {self.name}"

    @property
    def time_left(self) -> timedelta:
        """In whole seconds, when the store was asked."""
        return timedelta(seconds=max(0, int(self.holder.remaining)))

    @cached_property
    def parts(self) -> tuple[str, str, str]:
        """Model, primary key and key as the name has them, encoded; the first two empty for a name without a model."""
        return split(self.name) or ("", "", self.name)

    @property
    def pk(self) -> str:
        return ", ".join(pk_parts(self.parts[1]))

    @property
    def key(self) -> str:
        return decode(self.parts[2])

    @property
    def in_order(self) -> tuple[str, str, str]:
        """By name, and numbers by what they count."""
        model, pk, key = self.parts
        return model, pk.zfill(20), key


@dataclass(frozen=True)
class Overview:
    """What the stores told, in the order of the names, and what kept others from telling."""

    entries: list[Entry]
    failures: list[str]


def stores() -> list[Store]:
    """Every store of the project, the one of names without a model first. Raises `ConfigurationError`."""
    project.must_be_sound()
    found = [store_for()]
    for model in reservable_models():
        store = store_of(model)
        if store not in found:
            found.append(store)
    return found


def overview(pattern: str = "*") -> Overview:
    """Ask every store for what is reserved by a name that matches the shell pattern."""
    try:
        asked = stores()
    except ReservableError as error:
        return Overview([], [str(error)])
    entries: dict[str, Entry] = {}
    failures = []
    for store in asked:
        try:
            for holder in store.blocking.list(pattern):
                entry = Entry(holder, store)
                entries.setdefault(entry.shown_as, entry)  # two models may each name the same store
        except ReservableError as error:
            failures.append(str(error))
    return Overview(sorted(entries.values(), key=lambda entry: entry.in_order), failures)


def model_label(model: str) -> str:
    """A model's part of a name for people: "shop.Video", or as it is where no model of this project has it."""
    known = models_by_name().get(model)
    return known._meta.label if known is not None else decode(model)
