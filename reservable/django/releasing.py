"""Breaks the reservations that somebody has seen, and none that took their place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from reservable.backends.opening import Store
from reservable.django.overview import Entry, stores
from reservable.errors import ReservableError


class Fate(Enum):
    """What became of a reservation that was shown."""

    STANDING = "stands as it was shown"
    RELEASED = "released"
    OVER = "over already"
    PASSED_ON = "held by another grant now, which was left alone"
    UNKNOWN = "a store failed, so it may still stand"


@dataclass(frozen=True)
class Outcome:
    """One name and its fate; `entry` is who holds it now, or held it until it was released."""

    fate: Fate
    name: str
    entry: Entry | None = None
    why: str = ""


def look_again(shown: Iterable[str]) -> list[Outcome]:
    """Ask the stores for the reservations that were shown, each as `Entry.shown_as` has it; other text is left out.

    Raises `ConfigurationError` where no store can be asked.
    """
    asked = stores()
    return [_look(text, asked) for text in dict.fromkeys(shown) if _is_one(text)]


def release_shown(shown: Iterable[str]) -> list[Outcome]:
    """Break those of them that still stand; a name that went to somebody else stays theirs.

    Each is looked at right before it is broken. Stores break by name, so somebody who takes the name in between,
    within that round trip, cannot be told from the one that was shown. Raises as `look_again`.
    """
    asked = stores()
    return [_release(_look(text, asked)) for text in dict.fromkeys(shown) if _is_one(text)]


def _is_one(text: str) -> bool:
    fence, _, name = text.partition(" ")
    return fence.isdecimal() and bool(name)


def _look(text: str, asked: Sequence[Store]) -> Outcome:
    name = text.partition(" ")[2]
    another: Entry | None = None
    failure: str | None = None
    for store in asked:
        try:
            holder = store.blocking.holder(name)
        except ReservableError as error:
            failure = str(error)
            continue
        if holder is None:
            continue
        entry = Entry(holder, store)
        if entry.shown_as == text:
            return Outcome(Fate.STANDING, name, entry)
        another = entry
    if failure is not None:
        return Outcome(Fate.UNKNOWN, name, why=failure)
    if another is not None:
        return Outcome(Fate.PASSED_ON, name, another)
    return Outcome(Fate.OVER, name)


def _release(seen: Outcome) -> Outcome:
    if seen.fate is not Fate.STANDING or seen.entry is None:
        return seen
    try:
        broken = seen.entry.store.blocking.break_(seen.name)
    except ReservableError as error:
        return Outcome(Fate.UNKNOWN, seen.name, why=str(error))
    return Outcome(Fate.RELEASED if broken else Fate.OVER, seen.name, seen.entry)
