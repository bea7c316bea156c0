"""What was promised, and whether it was kept: judged by what the server counted and what is on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

LIFETIME = timedelta(hours=6)

GOOD, FAILING, KILLED = "good", "failing", "killed"


@dataclass(frozen=True)
class File:
    """One row at the end: what the table says, what the server saw, what is on disk, who holds it."""

    name: str
    kind: str
    """GOOD, FAILING (the server answers 500), or KILLED (its worker was)."""
    size: int | None = None
    sha256: str | None = None
    path: str | None = None
    requests: int = 0
    sent: Sequence[tuple[int, str]] = ()
    """Size and SHA-256 of each answer that the server sent to its end."""
    on_disk: tuple[int, str] | None = None
    holder: str | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Worker:
    number: int
    pid: int
    exitcode: int | None
    files: int = 0
    size: int = 0


@dataclass(frozen=True)
class Run:
    """All that is known at the end of a run."""

    files: Sequence[File]
    workers: Sequence[Worker]
    victim: int | None
    """Process id of the worker that was killed."""
    left_over: Sequence[str]
    """Files in the folder of the downloads that no row knows."""
    asked_again: int
    """Requests of one more run of the job, after all."""
    began: datetime
    ended: datetime

    def of(self, kind: str) -> list[File]:
        return [file for file in self.files if file.kind == kind]


class Promise(NamedTuple):
    text: str
    broken: list[str]
    """What speaks against it; empty when it was kept."""


def promises(run: Run) -> list[Promise]:
    """Every promise of this example, in the order of the table."""
    good = run.of(GOOD)
    return [
        _each(f"each of the {len(good)} good files was downloaded exactly once", good, _once),
        _each("size and SHA-256 in the table, on disk and at the server are the same", good, _verified),
        _each("every finished row was released", good, lambda f: f.holder and f"is held by {f.holder}"),
        _each("the failing row was tried once", run.of(FAILING), _tried_once),
        _each(
            "the failing row is still reserved, for six hours from its try", run.of(FAILING), _standing(run)
        ),
        _each("the killed worker's row was tried once", run.of(KILLED), _tried_once),
        _each("the killed worker's row is still reserved, by it", run.of(KILLED), _standing(run, run.victim)),
        Promise("the killed worker left nothing that looks like a whole file", _left_over(run)),
        Promise("the others went on until nothing was left", ended(run.workers, run.victim)),
        Promise("one more run of the job found nothing to do", _again(run)),
    ]


def _each(text: str, files: Sequence[File], wrong: Callable[[File], str | None]) -> Promise:
    found = [f"{file.name} {trouble}" for file in files if (trouble := wrong(file))]
    return Promise(text, found if files else ["there is no such row"])


def _once(file: File) -> str | None:
    if file.requests != 1 or len(file.sent) != 1:
        return f"was requested {file.requests} times and sent {len(file.sent)} times"
    return None


def _verified(file: File) -> str | None:
    noted = (file.size, file.sha256)
    if file.path is None:
        return "has no path in the table"
    if file.on_disk is None:
        return f"is not on disk at {file.path}"
    if not noted == file.on_disk == (file.sent[-1] if file.sent else None):
        return f"differs: {noted} in the table, {file.on_disk} on disk, {list(file.sent)} sent"
    return None


def _tried_once(file: File) -> str | None:
    if file.path is not None:
        return f"has a path in the table: {file.path}"
    return None if file.requests == 1 else f"was requested {file.requests} times"


def _standing(run: Run, pid: int | None = None) -> Callable[[File], str | None]:
    by = {f"worker {worker.number}, pid {worker.pid}" for worker in run.workers if pid in {None, worker.pid}}

    def wrong(file: File) -> str | None:
        if file.holder is None or file.until is None:
            return "is not reserved"
        if file.holder not in by:
            return f"is held by {file.holder}, not by {' or '.join(sorted(by))}"
        # The store's clock need not be ours to the second: its machine may be another.
        slack = timedelta(minutes=5)
        if not run.began + LIFETIME - slack <= file.until <= run.ended + LIFETIME + slack:
            return f"is reserved until {file.until}, which is not six hours after its try"
        return None

    return wrong


def _left_over(run: Run) -> list[str]:
    half = f".{run.victim}.part"
    return [f"{name} is in the folder" for name in run.left_over if not name.endswith(half)]


def ended(workers: Sequence[Worker], victim: int | None) -> list[str]:
    """What speaks against it that the victim was killed and that all others ended well."""
    expected = {worker.pid: -9 if worker.pid == victim else 0 for worker in workers}
    wrong = [
        f"worker {worker.number} ended with {worker.exitcode}, not {expected[worker.pid]}"
        for worker in workers
        if worker.exitcode != expected[worker.pid]
    ]
    if victim not in expected:
        wrong.append("no worker was killed")
    return wrong


def _again(run: Run) -> list[str]:
    return [f"it made {run.asked_again} requests"] if run.asked_again else []
