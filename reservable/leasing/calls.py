"""One call of a verb that claims: what was asked for, a desk to ask it of, and the leases that come of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from reservable.cancelling import noted
from reservable.leasing.asked import Claim, Start
from reservable.leasing.async_lease import AsyncLease
from reservable.leasing.claiming import Claimed, give_back
from reservable.leasing.desk import Desk
from reservable.leasing.lease import Lease

Place = tuple[Desk, list[Claimed]]
"""Where rows were claimed, and which."""


def leases(find: Callable[[], Desk], asked: Claim | Start, **options: bool) -> list[Lease]:
    """The leases of what was asked for, at the desk that is found; the options are those of `Lease`."""
    desk = find()
    return [Lease(desk, one, asked.worker, **options) for one in asked.on(desk)]


async def aleases(
    spawn: Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]],
    find: Callable[[], Desk],
    asked: Claim | Start,
    **options: bool,
) -> list[AsyncLease]:
    """`leases` for asyncio: `spawn` runs blocking code. Cancelled, the claims are seen through and given back."""

    def work() -> Place:
        desk = find()
        return desk, asked.on(desk)

    def let_go(place: Place) -> None:
        desk, claimed = place
        give_back(desk, [one.held for one in claimed])

    desk, claimed = await noted(spawn, work, let_go)
    return [AsyncLease(desk, one, asked.worker, **options) for one in claimed]
