"""Many leases completed at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from reservable.errors import LeaseLost
from reservable.leasing.desk import Desk
from reservable.leasing.leases import LeaseBase
from reservable.queue.moves import Move

L = TypeVar("L", bound=LeaseBase)


AT_ONCE = 1000
"""Leases that are completed in one statement at most: databases count parameters."""


def complete_all(leases: Sequence[L], *, patient: bool = True) -> list[L]:
    """Complete them in as few statements as can be; those that were still theirs, in their order.

    Leases with values of their own are completed one by one. Unless it is `patient`, leases whose rows somebody else
    has locked stay open, where the database can pass over them.
    """
    together: dict[tuple[Any, ...], list[L]] = {}
    done: set[int] = set()
    mine = [lease for lease in leases if not lease.finished and lease._hold.is_here]
    for lease in mine:
        lease._must_be_free()
    for lease in mine:
        if lease._values:
            done.update(_alone(lease))
        else:
            together.setdefault((lease._desk, lease._completion, lease.step), []).append(lease)
    for (desk, move, _), group in together.items():
        for some in batched(group):
            done.update(_at_once(desk, move, some, patient=patient))
    return [lease for lease in leases if id(lease) in done]


def _alone(lease: Any) -> list[int]:
    try:
        lease._complete({})
    except LeaseLost:
        return []
    return [id(lease)]


def batched(leases: Sequence[L]) -> Iterator[Sequence[L]]:
    """As many as go into one statement."""
    return (leases[start : start + AT_ONCE] for start in range(0, len(leases), AT_ONCE))


def _at_once(desk: Desk, move: Move, leases: Sequence[L], *, patient: bool) -> list[int]:
    for lease in leases:
        lease._hold.rest()
    held = [lease._held for lease in leases]
    try:
        asked = desk.move(move, held, columns=leases[0]._following(), patient=patient)
        ours = set(held if asked.answer == len(held) else desk.still(held, move))
        locked = {*desk.still_leased(held)} if not patient and len(ours) < len(held) else set()
    except BaseException:
        for lease in leases:
            lease._hold.go_on()
        raise
    for lease in leases:
        if lease._held in ours:
            lease._end()
        elif lease._held in locked:
            lease._hold.go_on()
        else:
            lease._hold.gone()
    return [id(lease) for lease in leases if lease._held in ours]
