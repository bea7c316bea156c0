"""`awork`: the leases of the next rows, one after the other, for asyncio."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial

from reservable.cancelling import noted
from reservable.leasing.async_lease import AsyncLease, seen_through
from reservable.leasing.bells import AsyncBell
from reservable.leasing.claiming import Claimed, give_back
from reservable.leasing.desk import Desk
from reservable.leasing.intake import Intake
from reservable.leasing.releasing import release_all
from reservable.leasing.stopping import Stopping


async def leases(
    find: Callable[[], Awaitable[Desk]], intake: Intake, stopping: Stopping
) -> AsyncIterator[AsyncLease]:
    """As `working.leases`."""
    intake.open(await find())
    async with AsyncBell(intake.desk) as bell:
        while not stopping():
            bell.still()
            waiting = deque(await taken(intake, intake.batch))
            if not waiting:
                for nap in stopping.naps(await intake.desk.spawned(intake.pause)):
                    if await bell.wait(nap):
                        break
            try:
                while waiting and not stopping():
                    if waiting[0].is_untouched:  # not lost meanwhile
                        yield waiting[0]
                    if waiting[0].is_untouched:
                        await seen_through(intake.desk, release_all, [waiting[0]])
                    waiting.popleft()
            finally:
                if waiting:
                    await seen_through(intake.desk, release_all, waiting)


async def taken(intake: Intake, limit: int) -> list[AsyncLease]:
    """Leases of the next rows, kept alive from now on. Cancelled, it gives back what it has claimed."""

    def let_go(claimed: Sequence[Claimed]) -> None:
        give_back(intake.desk, [one.held for one in claimed])

    claimed = await noted(intake.desk.spawned, partial(intake.claim, limit), let_go)
    return [AsyncLease(intake.desk, one, intake.worker, renew=True, skip_error=True) for one in claimed]
