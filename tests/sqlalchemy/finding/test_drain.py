"""Eight processes empty a table: every row is worked on exactly once, and nobody is told "none" too early."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import race
from tests.sqlalchemy.finding.drain import counts, drain, fill
from tests.stores import DATABASES

PROCESSES = 8


def drain_in_eight(
    fresh_database: Callable[[str], str], tmp_path: Path, kind: str, *, rows: int, ordered: bool
) -> None:
    url = fresh_database(kind.removeprefix("redis+"))
    store = fresh_database("redis") if kind.startswith("redis+") else None
    fill(url, rows)
    log = tmp_path / "log"

    drained = race(drain, url, store, str(log), ordered, processes=PROCESSES, within=120)

    assert counts(url) == [(1, rows)]
    worked_on = Counter(map(int, log.read_text().split()))
    assert set(worked_on.values()) == {1}
    assert sorted(worked_on) == list(range(1, rows + 1))
    assert sorted(one for process in drained for one in process.ids) == sorted(worked_on)
    assert [process.left for process in drained] == [[]] * PROCESSES
    print(f"\ndrain {kind} {rows}: {max(process.seconds for process in drained):.2f} s")


@pytest.mark.parametrize("kind", ["redis+postgresql", *DATABASES])
def test_eight_processes_work_on_every_row_exactly_once(
    fresh_database: Callable[[str], str], tmp_path: Path, kind: str
):
    drain_in_eight(fresh_database, tmp_path, kind, rows=1_000, ordered=True)


def test_eight_processes_share_rows_whose_order_has_no_index(
    fresh_database: Callable[[str], str], tmp_path: Path
):
    """InnoDB locks every row that it sorts: those who come second see nothing to skip to."""
    drain_in_eight(fresh_database, tmp_path, "mariadb", rows=300, ordered=False)
