"""The stage: files, server, rows and workers; kills one of them, watches the others, and draws up the report."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from multiprocessing.process import BaseProcess
from pathlib import Path

from sqlalchemy import make_url, select
from sqlalchemy.exc import SQLAlchemyError

from reservable import ReservableError

from . import screen
from .model import Base, Video
from .place import Place, Unusable
from .report import FAILING, GOOD, KILLED, File, Run, Worker, promises
from .server import FileServer
from .workers import working

PROJECT = Path(__file__).parents[2]
PATIENCE = 60.0
"""Seconds without any progress after which the workers are ended; what is missing then shows in the report."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every promise was kept; 1: one was broken; 2: it could not run; 130: interrupted."""
    options = _options(arguments)
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM)
    )  # by way of everything that clears up
    os.environ["no_proxy"] = "127.0.0.1"  # a proxy has no business between the workers and our own server
    os.environ.pop("RESERVABLE_URL", None)  # --backend says it all
    try:
        run = _perform(options)
    except (Unusable, ReservableError, SQLAlchemyError, ImportError, OSError) as error:
        print(f"The example cannot run: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nInterrupted; everything is cleared away.", file=sys.stderr)
        return 130
    return conclude(run)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Download a folder of files with several workers, one of which is killed."
    )
    parser.add_argument(
        "--folder", type=Path, help="the files to serve (default: this project's docs and sources)"
    )
    parser.add_argument(
        "--backend",
        metavar="URL",
        help="redis://…, postgresql+psycopg://… or mariadb+pymysql://… (default: SQLite)",
    )
    parser.add_argument(
        "--workers", type=int, default=4, metavar="N", help="processes side by side, 2 to 64 (default: 4)"
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave rows, reservations and downloads, and say where they are"
    )
    options = parser.parse_args(arguments)
    if not 2 <= options.workers <= 64:
        parser.error("--workers is 2 to 64: one is killed, and somebody must go on")
    if options.folder is not None and not options.folder.is_dir():
        parser.error(f"--folder {options.folder} is no folder")
    return options


def _perform(options: argparse.Namespace) -> Run:
    files = _files(options.folder)
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="reservable-demo-"))
        if not options.keep:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        (folder / "files").mkdir()
        place = Place.make(folder, options.backend)
        if not options.keep:
            stack.callback(place.clear, options.backend)
        # The biggest takes longest; the failing one comes early, so that it could be tried often.
        halting = max(files, key=lambda file: file.stat().st_size)
        failing = next(file for file in files if file != halting)
        server = stack.enter_context(FileServer(files, failing, halting))
        _add_rows(place, server)
        print(f"{len(files)} files, {options.workers} workers, {_where(place)}")
        run = _watch(place, server, options.workers)
        if options.keep:
            names = [
                str(folder),
                place.schema and f"schema {place.schema}",
                place.prefix and f"prefix {place.prefix}",
            ]
            print("\nKept:", ", ".join(filter(None, names)))
        return run


def _where(place: Place) -> str:
    rows = make_url(place.database).get_backend_name()
    if place.reservations is None:
        return f"rows and reservations in {rows}"
    return f"rows in {rows}, reservations in {place.reservations.partition(':')[0]}"


def _files(folder: Path | None) -> list[Path]:
    """Every regular file of the folder, but for hidden ones and what Python compiles."""
    if folder is None:
        roots = [PROJECT / name for name in ("docs", "examples", "reservable")]
        found = [file for root in roots for file in sorted(root.rglob("*"))] + sorted(PROJECT.glob("*.md"))
    else:
        roots, found = [folder], sorted(folder.rglob("*"))
    base = PROJECT if folder is None else folder
    files = [
        file
        for file in found
        if file.is_file()
        and not file.is_symlink()
        and not any(part.startswith(".") or part == "__pycache__" for part in file.relative_to(base).parts)
        and os.access(file, os.R_OK)
    ]
    if len(files) < 3 or not any(file.stat().st_size for file in files):
        raise Unusable(
            f"{base} needs three files at least, one of them not empty: one fails, one is cut off, one is good"
        )
    return files


def _add_rows(place: Place, server: FileServer) -> None:
    with place.session() as session:
        Base.metadata.create_all(session.get_bind())
        videos = [Video(url=server.url(file)) for file in server.files]
        session.add_all(videos)
        session.commit()
        place.configure(owner="the stage")
        videos[0].is_reserved("download")  # a store that cannot be reached is better known now


def _watch(place: Place, server: FileServer, count: int) -> Run:
    began = datetime.now(UTC)
    with screen.progress(len(server.files)) as show, working(place, range(1, count + 1)) as workers:
        victim = _follow(server, workers, show)
        ended = [(worker.pid or 0, worker.exitcode) for worker in workers]
    server.let_go.set()
    before = server.requests
    with working(place, [count + 1]) as again:  # as cron would, a minute later
        again[0].join(PATIENCE)
    asked_again = server.requests - before
    server.close()  # the last answers are counted
    return _look(place, server, ended=ended, victim=victim, asked_again=asked_again, began=began)


def _follow(server: FileServer, workers: Sequence[BaseProcess], show: screen.Show) -> int | None:
    """Until all workers have ended: show how far they are, and kill the one that is halfway in the halting file."""
    victim: int | None = None
    last, since = -1, time.monotonic()
    while any(worker.is_alive() for worker in workers) and time.monotonic() - since < PATIENCE:
        if victim is None and server.halfway.wait(0.02):
            victim = int(server.served[server.halting].agents[0].partition("/")[2])
            for worker in workers:
                if worker.pid == victim:
                    worker.kill()
                    worker.join()
            server.let_go.set()
        time.sleep(0.02)
        done = server.answered
        if done != last:
            last, since = done, time.monotonic()
        alive = sum(worker.is_alive() for worker in workers)
        show(
            done, f"{alive} workers" if victim is None else f"{alive} workers, one was killed in mid-download"
        )
    return victim


def _look(
    place: Place,
    server: FileServer,
    *,
    ended: Sequence[tuple[int, int | None]],
    victim: int | None,
    asked_again: int,
    began: datetime,
) -> Run:
    """Collect what the table, the store, the server and the disk say."""
    place.configure(owner="the report")
    kinds = {server.failing: FAILING, server.halting: KILLED}
    by_worker: dict[str, list[int]] = {}
    files, known = [], set()
    with place.session() as session:
        for file, video in zip(server.files, session.scalars(select(Video).order_by(Video.id)), strict=True):
            served, holder = server.served[file], video.reservation("download").holder()
            known.add(video.path)
            if served.sent:
                by_worker.setdefault(served.agents[-1], []).append(served.sent[-1][0])
            files.append(
                File(
                    name=file.name,
                    kind=kinds.get(file, GOOD),
                    size=video.size,
                    sha256=video.sha256,
                    path=video.path,
                    requests=served.requests,
                    sent=served.sent,
                    on_disk=_on_disk(video.path),
                    holder=holder.owner if holder else None,
                    until=holder.until if holder else None,
                )
            )
    workers = []
    for number, (pid, exitcode) in enumerate(ended, 1):
        sizes = by_worker.get(f"downloader/{pid}", [])
        workers.append(Worker(number, pid, exitcode, len(sizes), sum(sizes)))
    left_over = [path.name for path in (place.folder / "files").iterdir() if str(path) not in known]
    return Run(files, workers, victim, left_over, asked_again, began, datetime.now(UTC))


def _on_disk(path: str | None) -> tuple[int, str] | None:
    if path is None or not Path(path).is_file():
        return None
    with Path(path).open("rb") as file:
        return Path(path).stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()


def conclude(run: Run) -> int:
    """Show the tables; 0 when every promise was kept, else 1, with the broken ones named."""
    screen.table(
        "Files",
        ["", "files", "requests", "bytes on disk", "still reserved"],
        [_group(run, *one) for one in _GROUPS],
    )
    screen.table(
        "Workers",
        ["worker", "pid", "files", "bytes", "ended"],
        [
            [
                str(w.number),
                str(w.pid),
                w.files,
                w.size,
                "killed" if w.pid == run.victim else f"with {w.exitcode}",
            ]
            for w in run.workers
        ],
    )
    return screen.verdict(promises(run), (run.ended - run.began).total_seconds())


_GROUPS = (
    (GOOD, "downloaded and verified"),
    (FAILING, "failed: the server answers 500"),
    (KILLED, "worker killed in mid-download"),
)


def _group(run: Run, kind: str, label: str) -> list[object]:
    files = run.of(kind)
    held = [f"until {file.until:%Y-%m-%d %H:%M:%S} UTC by {file.holder}" for file in files if file.until]
    more = f" and {len(held) - 1} more" if len(held) > 1 else ""
    size = sum(file.on_disk[0] for file in files if file.on_disk)
    return [label, len(files), sum(file.requests for file in files), size, held[0] + more if held else "no"]
