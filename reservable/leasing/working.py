"""`work`: the leases of the next rows, one after the other, for blocking code."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from reservable.leasing.bells import Bell
from reservable.leasing.desk import Desk
from reservable.leasing.intake import Intake
from reservable.leasing.lease import Lease
from reservable.leasing.releasing import release_all
from reservable.leasing.stopping import Stopping


def leases(find: Callable[[], Desk], intake: Intake, stopping: Stopping) -> Iterator[Lease]:
    """Lease by lease until it is to stop; one that was not begun is given back when the next is asked for."""
    intake.open(find())
    with Bell(intake.desk) as bell:
        while not stopping():
            bell.still()
            waiting = deque(taken(intake, intake.batch))
            if not waiting:
                any(bell.wait(nap) for nap in stopping.naps(intake.pause()))
            try:
                while waiting and not stopping():
                    if waiting[0].is_untouched:  # not lost meanwhile
                        yield waiting[0]
                    release_all([waiting.popleft()])
            finally:
                release_all(waiting)


def taken(intake: Intake, limit: int) -> list[Lease]:
    """Leases of the next rows, kept alive from now on."""
    return [
        Lease(intake.desk, one, intake.worker, renew=True, skip_error=True) for one in intake.claim(limit)
    ]
