"""A worker is killed and five start at once, cleaning up while they look for work: one at a time has the row."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.orm import Session

from tests.processes import Worker, race
from tests.sqlalchemy.queue.models import Kept
from tests.sqlalchemy.queue.restarts import boot, hold
from tests.sqlalchemy.queue.rows import added, states

WORKERS, TURNS = 5, 4


def test_after_a_restart_one_at_a_time_has_the_row_and_none_before_its_time(
    session: Session, url: str, tmp_path: Path
) -> None:
    [pk] = added(session, Kept())
    log = tmp_path / "log"
    with Worker(hold, url) as killed:
        over = killed.hear(30)
        killed.kill()
    begun = race(boot, url, str(log), TURNS, processes=WORKERS, within=60)
    assert all(time >= over for each in begun for time in each)
    lines = [line.split() for line in log.read_text().splitlines()]
    assert len(lines) == 2 * WORKERS * TURNS
    for (one, begins), (other, ends) in zip(lines[::2], lines[1::2], strict=True):
        assert (one, begins, ends) == (other, "begins", "ends")
    assert states(session, Kept) == {pk: ("pending", 1)}
