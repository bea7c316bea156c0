"""What the admin's page shows of the reservations: filters, search, order, and one page of rows with their objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from django.contrib.admin.utils import quote
from django.core.paginator import Page, Paginator
from django.http import QueryDict
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import get_current_timezone_name, localtime

from reservable.django.named import rows_named, text_of
from reservable.django.overview import Entry, model_label
from reservable.names import decode

NO_MODEL = ":"
"""The filter for names without a model; no part of a name has a colon."""

ORDERS: dict[str, Callable[[Entry], Any]] = {
    "name": lambda entry: entry.in_order,
    "key": lambda entry: entry.key,
    "owner": lambda entry: entry.owner,
    "since": lambda entry: entry.holder.since,
    "until": lambda entry: entry.holder.until,
}

COLUMNS = (
    ("model", "Model", "name"),
    ("object", "Object", ""),
    ("key", "Key", "key"),
    ("owner", "Owner", "owner"),
    ("since", "Since", "since"),
    ("until", "Until", "until"),
    ("left", "Time left", ""),
)
"""Name, label, and the order that the column stands for."""

CHOICES = 50
"""So many keys are offered as a filter, the commonest first: a project may make one for each of its users."""


class Column(NamedTuple):
    """The head of one column; `order` is what a click on it asks for, empty where it cannot be asked for.

    `sorted` says how the table is sorted by it, as the admin's styles call it; empty where it is not.
    """

    name: str
    label: str
    order: str
    sorted: str


@dataclass(frozen=True)
class Choice:
    """One line of a filter; `value` None takes the filter off."""

    value: str | None
    label: str
    count: int
    selected: bool


@dataclass(frozen=True)
class Row:
    """One line of the table: a reservation, and the object it is of, where there is one."""

    entry: Entry
    model: str
    object: str
    link: str | None
    """The address of the object's page in this admin, where it has one that the user may see."""

    @property
    def key(self) -> str:
        """The key, which may be the long name of a class: it can be broken behind its dots."""
        parts = ((part,) for part in self.entry.key.split("."))
        return str(format_html_join(SafeString(".<wbr>"), "{}", parts))

    @property
    def since(self) -> datetime:
        there: datetime = localtime(self.entry.holder.since)
        return there

    @property
    def until(self) -> datetime:
        there: datetime = localtime(self.entry.holder.until)
        return there


class Listing:
    """The reservations that one request asks for; `whole` shows all that are given.

    What the request says wrongly (an order or a page that is none) is as if it had not said it.
    """

    def __init__(self, admin: Any, request: Any, entries: Sequence[Entry], *, whole: bool = False) -> None:
        self._admin = admin
        self._request = request
        self._all = entries
        self.asked: Any = QueryDict() if whole else request.GET
        """The query of the address, for links that change a part of it."""
        self.query: str = self.asked.get("q", "").strip()
        self.model: str | None = self.asked.get("model")
        self.key: str | None = self.asked.get("key")
        self.order: str = self.asked.get("o", "")
        self._page: str = self.asked.get("p", "1")
        self._size = max(1, len(entries)) if whole else admin.list_per_page

    @cached_property
    def found(self) -> list[Entry]:
        """Those that pass the filters and the search, in the order that was asked for."""
        words = self.query.casefold().split()
        found = [
            entry
            for entry in self._all
            if self.model in (None, _model(entry))
            and self.key in (None, entry.parts[2])
            and _has(entry, words)
        ]
        order = ORDERS.get(self.order.removeprefix("-"))
        if order is not None:
            found.sort(key=order, reverse=self.order.startswith("-"))
        return found

    @property
    def is_filtered(self) -> bool:
        """Whether not all are asked for."""
        return bool(self.query) or self.model is not None or self.key is not None

    @property
    def zone(self) -> str:
        """The time zone of the table."""
        return str(get_current_timezone_name())

    @property
    def columns(self) -> list[Column]:
        """The heads of the table."""
        return [self._column(*column) for column in COLUMNS]

    def _column(self, name: str, label: str, order: str) -> Column:
        if order and order == self.order:  # a click turns it round
            return Column(name, label, f"-{order}", "ascending")
        return Column(name, label, order, "descending" if order and f"-{order}" == self.order else "")

    @property
    def total(self) -> int:
        """How many are reserved in all."""
        return len(self._all)

    @cached_property
    def page(self) -> Page:
        return Paginator(self.found, self._size).get_page(self._page)

    @property
    def pages(self) -> list[Any]:
        """The numbers of the pages to link to; not all, where there are many."""
        return [*self.page.paginator.get_elided_page_range(self.page.number)]

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of this page."""
        entries = list(self.page)
        objects = rows_named(entry.name for entry in entries)
        labels = {model: model_label(model) for model in {entry.parts[0] for entry in entries}}
        return [self._row(entry, labels[entry.parts[0]], objects.get(entry.name)) for entry in entries]

    def _row(self, entry: Entry, label: str, instance: Any) -> Row:
        if instance is None:
            return Row(entry, label, entry.pk, None)
        return Row(entry, label, text_of(instance) or entry.pk, self._link(instance))

    def _link(self, instance: Any) -> str | None:
        site, concrete = self._admin.admin_site, instance._meta.concrete_model
        proxies = [model for model in site._registry if model._meta.concrete_model is concrete]
        for model in sorted(proxies, key=lambda model: model is not concrete):
            if site._registry[model].has_view_or_change_permission(self._request, instance):
                place = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
                try:
                    return str(reverse(place, args=(quote(instance.pk),), current_app=site.name))
                except NoReverseMatch:
                    continue
        return None

    @cached_property
    def models(self) -> list[Choice]:
        """The filter by model."""
        counts = Counter(_model(entry) for entry in self._all)
        return _choices(sorted(counts, key=_model_choice), counts, _model_choice, self.model)

    @cached_property
    def keys(self) -> list[Choice]:
        """The filter by key, of the model that is chosen."""
        counts = Counter(entry.parts[2] for entry in self._all if self.model in (None, _model(entry)))
        commonest = sorted(value for value, _ in counts.most_common(CHOICES))
        return _choices(commonest, counts, decode, self.key)


def _model(entry: Entry) -> str:
    return entry.parts[0] or NO_MODEL


def _model_choice(model: str) -> str:
    return "without a model" if model == NO_MODEL else model_label(model)


def _has(entry: Entry, words: Sequence[str]) -> bool:
    """Whether each word is somewhere in the owner or the name, as it is or as it is shown."""
    if not words:
        return True
    text = " ".join((entry.name, decode(entry.name), entry.owner)).casefold()
    return all(word in text for word in words)


def _choices(
    values: Iterable[str], counts: Counter[str], label: Callable[[str], str], chosen: str | None
) -> list[Choice]:
    offered = list(values)
    if chosen is not None and chosen not in offered:
        offered.append(chosen)
    every = Choice(None, "All", counts.total(), chosen is None)
    return [every, *(Choice(value, label(value), counts[value], value == chosen) for value in offered)]
