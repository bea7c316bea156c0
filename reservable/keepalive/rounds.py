"""How a batch is extended, as a plan whose steps are calls of the backend's verbs, for both colours."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from operator import methodcaller
from typing import Any

from reservable.errors import BackendError
from reservable.grants import Grant
from reservable.keepalive.entries import Entry, Extension
from reservable.plans import Plan

log = logging.getLogger("reservable")

BATCH = 1000
"""Reservations that are extended in one call."""

Asked = tuple[Entry, Grant, float]
"""An entry, its grant and its end when the question was sent. Not its object: a call that hangs must not hold it."""


def batches(entries: Iterable[Entry]) -> Iterator[tuple[timedelta, list[Entry]]]:
    """What can be extended together, for as long: of one lifetime, no name twice.

    What failed together is asked again in ever smaller parts, so that one that cannot be extended (on a node of
    its own, that is down) does not take the others along.
    """
    groups: dict[Any, list[Entry]] = defaultdict(list)
    names: set[tuple[str, int]] = set()
    for entry in entries:
        standing = entry.renewable()
        if standing is not None:
            number = 0
            while (standing.grant.name, number) in names:
                number += 1
            names.add((standing.grant.name, number))
            groups[standing.kept.renewal, entry.failures, number].append(entry)
            del standing  # has the object
    for (lifetime, failures, _), group in groups.items():
        size = max(1, BATCH >> 3 * failures)
        for start in range(0, len(group), size):
            yield lifetime, group[start : start + size]


def extending(backend: Any, lifetime: timedelta, batch: Sequence[Entry]) -> Plan[None]:
    """Extend the batch, tell each entry what came of it, and give up what is nobody's any more."""
    asked = [one for entry in batch if (one := _asked(entry)) is not None]
    if not asked:
        return
    held = [(grant.name, grant.token) for _, grant, _ in asked]
    sent = time.monotonic()
    try:
        ends = yield from _extend_many(backend, held, lifetime)
    except Exception as error:  # noqa: BLE001 - whatever it is, the lifetime is not over yet
        _failed(asked, lifetime, error)
        extended = asked  # perhaps: the answer may be all that failed
    else:
        _answered(asked, ends, sent + lifetime.total_seconds())
        extended = [one for one in asked if one[1].name in ends]
    for entry, grant, _ in extended:
        if entry.is_nobodys() and not (yield from _give_up(entry, grant)):
            return  # the store fails: the rest runs out by itself


def _asked(entry: Entry) -> Asked | None:
    standing = entry.renewable()
    return (entry, standing.grant, standing.deadline) if standing is not None else None


def _extend_many(backend: Any, held: list[tuple[str, str]], lifetime: timedelta) -> Plan[dict[str, int]]:
    if hasattr(backend, "extend_many"):
        return (yield methodcaller("extend_many", held, lifetime))  # type: ignore[no-any-return]
    ends = {}
    for name, token in held:
        until = yield methodcaller("extend", name, token, lifetime)
        if until is not None:
            ends[name] = until
    return ends


def _answered(asked: Sequence[Asked], ends: dict[str, int], deadline: float) -> None:
    now = time.monotonic()
    for entry, grant, before in asked:
        until = ends.get(grant.name)
        if until is None:
            entry.refused()
        else:
            entry.extended(Extension(until, deadline, now), before)


def _failed(asked: Sequence[Asked], lifetime: timedelta, error: Exception) -> None:
    _, first, _ = asked[0]
    if any(not entry.failures for entry, _, _ in asked):  # told once, until it works again
        # Only our own errors are known to tell no token.
        why = error if isinstance(error, BackendError) else type(error).__qualname__
        log.warning("renewing %s (%d in all) failed, and is tried again: %s", first.name, len(asked), why)
    for entry, _, _ in asked:
        entry.failed(lifetime.total_seconds())


def _give_up(entry: Entry, grant: Grant) -> Plan[bool]:
    left = entry.free_at - time.monotonic() if entry.free_at is not None else 0.0
    step = methodcaller("release", grant.name, grant.token)
    if left >= 0.001:
        step = methodcaller("extend", grant.name, grant.token, timedelta(seconds=left))
    try:
        yield step
    except Exception as error:  # noqa: BLE001 - as above; it runs out by itself
        log.debug("%s was extended when it was over, and stays so: %s", grant.name, type(error).__qualname__)
        return False
    return True
