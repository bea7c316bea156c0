"""The example keeps its promises on every store, and says so when one is broken."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from examples.downloading import report, stage
from examples.downloading.report import FAILING, GOOD, KILLED, File, Run, Worker
from tests.acceptance.examples import PROJECT, must_have_refused, run_example

DOWNLOAD = "examples/download.py"
NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with 30 files, some in folders, one empty, one with a name that URLs must escape."""
    folder = tmp_path / "served"
    (folder / "a" / "b").mkdir(parents=True)
    for number in range(28):
        place = folder / ("a/b" if number % 3 else "a")
        (place / f"{number:02}.bin").write_bytes(os.urandom(number * 1000))
    (folder / "what? 100% #1 é.txt").write_text("found")
    (folder / "big.bin").write_bytes(os.urandom(300_000))
    return folder


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("store", ["sqlite", "redis", "postgresql", "mariadb"])
def test_every_promise_is_kept(
    store: str, files: Path, temporary: Path, fresh_database: Callable[[str], str]
) -> None:
    backend = () if store == "sqlite" else ("--backend", fresh_database(store))
    done = run_example(DOWNLOAD, "--folder", str(files), *backend, temporary=temporary)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "Every promise was kept" in done.stdout
    assert "BROKEN" not in done.stdout
    held = r"until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC by worker \d, pid \d+"
    assert re.search(r"downloaded and verified +28 +28 +[\d,]+ +no\n", done.stdout)
    assert re.search(rf"failed: the server answers 500 +1 +1 +0 +{held}\n", done.stdout)
    assert re.search(rf"worker killed in mid-download +1 +1 +0 +{held}\n", done.stdout)
    assert len(re.findall(r"^  \d +\d+ +\d+ +[\d,]+ +with 0$", done.stdout, re.MULTILINE)) == 3
    assert len(re.findall(r"^  kept  ", done.stdout, re.MULTILINE)) == 10
    assert re.fullmatch(r"[\n -~]*", done.stdout), "control characters where there is no terminal"
    assert list(temporary.iterdir()) == []


def test_the_default_is_the_projects_own_files(temporary: Path) -> None:
    done = run_example(DOWNLOAD, "--keep", "--workers", "2", temporary=temporary)
    assert done.returncode == 0, done.stdout + done.stderr
    (kept,) = temporary.iterdir()
    assert f"Kept: {kept}" in done.stdout
    downloaded = {path.read_bytes() for path in (kept / "files").glob("*.py")}
    assert (PROJECT / "reservable" / "errors.py").read_bytes() in downloaded


@pytest.mark.parametrize(("example", "driver"), [("cron", "sqlite"), ("async_cron", "sqlite+aiosqlite")])
def test_the_shortest_cron_job(sqlite_url: str, temporary: Path, example: str, driver: str) -> None:
    address = sqlite_url.replace("sqlite", driver, 1)

    def run() -> str:
        done = run_example(f"examples/{example}.py", temporary=temporary, DATABASE_URL=address)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run() == ""
    engine = create_engine(sqlite_url)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO invoices (id) VALUES (1), (2)"))
    engine.dispose()
    assert run() == "sending invoice 1\nsending invoice 2\n"
    assert run() == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--backend", "oracle://nobody@127.0.0.1/none"],
        ["--backend", "memory://"],
        ["--backend", "redis://127.0.0.1:1"],
        ["--backend", "postgresql+psycopg://nobody:secret@127.0.0.1:1/none"],
        ["--workers", "1"],
        ["--folder", "tests/docs/none"],
    ],
)
def test_what_cannot_run_says_why_and_leaves_nothing(arguments: list[str], temporary: Path) -> None:
    done = run_example(DOWNLOAD, *arguments, temporary=temporary)
    must_have_refused(done, temporary)


# What the report says about a run that went wrong. The example has no switch for that; its judge takes any run.


def a_good_run() -> Run:
    def file(number: int) -> File:
        content = (1000 + number, f"{number:064x}")
        return File(
            name=f"{number}.bin",
            kind=GOOD,
            size=content[0],
            sha256=content[1],
            path=f"/downloads/{number}.bin",
            requests=1,
            sent=(content,),
            on_disk=content,
        )

    until = NOW + timedelta(hours=6, seconds=1)
    failing = File("failing", FAILING, requests=1, holder="worker 1, pid 11", until=until)
    killed = File("killed", KILLED, requests=1, holder="worker 2, pid 12", until=until)
    return Run(
        files=[file(1), file(2), failing, killed],
        workers=[Worker(1, 11, 0, 2, 2003), Worker(2, 12, -9)],
        victim=12,
        left_over=["4.bin.12.part"],
        asked_again=0,
        began=NOW,
        ended=NOW + timedelta(seconds=2),
    )


def doctored(run: Run, name: str, **changes: object) -> Run:
    files = [replace(file, **changes) if file.name == name else file for file in run.files]  # type: ignore[arg-type]
    return replace(run, files=files)


def test_a_good_run_is_judged_good(capsys: pytest.CaptureFixture[str]) -> None:
    assert stage.conclude(a_good_run()) == 0
    said = capsys.readouterr()
    assert "Every promise was kept" in said.out
    assert said.err == ""


OTHER = (1001, "f" * 64)


@pytest.mark.parametrize(
    ("sabotage", "promise"),
    [
        (lambda run: doctored(run, "1.bin", requests=2), "downloaded exactly once"),
        (lambda run: doctored(run, "1.bin", requests=0, sent=()), "downloaded exactly once"),
        (lambda run: doctored(run, "2.bin", on_disk=OTHER), "size and SHA-256"),
        (lambda run: doctored(run, "2.bin", sha256="0" * 64), "size and SHA-256"),
        (lambda run: doctored(run, "2.bin", on_disk=None), "size and SHA-256"),
        (lambda run: doctored(run, "2.bin", path=None), "size and SHA-256"),
        (lambda run: doctored(run, "1.bin", holder="worker 1, pid 11"), "every finished row was released"),
        (lambda run: doctored(run, "failing", requests=7), "the failing row was tried once"),
        (lambda run: doctored(run, "failing", path="/x"), "the failing row was tried once"),
        (lambda run: doctored(run, "failing", holder=None, until=None), "the failing row is still reserved"),
        (lambda run: doctored(run, "failing", until=NOW), "the failing row is still reserved"),
        (lambda run: doctored(run, "failing", holder="somebody"), "the failing row is still reserved"),
        (lambda run: doctored(run, "killed", requests=2), "the killed worker's row was tried once"),
        (lambda run: doctored(run, "killed", holder=None), "the killed worker's row is still reserved"),
        (lambda run: doctored(run, "killed", holder="worker 1, pid 11"), "row is still reserved, by it"),
        (lambda run: replace(run, left_over=["4.bin"]), "nothing that looks like a whole file"),
        (lambda run: replace(run, workers=[Worker(1, 11, 1), run.workers[1]]), "went on until nothing"),
        (lambda run: replace(run, workers=[Worker(1, 11, None), run.workers[1]]), "went on until nothing"),
        (lambda run: replace(run, victim=None), "went on until nothing"),
        (lambda run: replace(run, asked_again=1), "found nothing to do"),
        (lambda run: replace(run, files=run.files[2:]), "downloaded exactly once"),
    ],
)
def test_a_broken_promise_is_named_and_gives_exit_code_1(
    sabotage: Callable[[Run], Run], promise: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = sabotage(a_good_run())
    assert stage.conclude(run) == 1
    said = capsys.readouterr()
    broken = [one.text for one in report.promises(run) if one.broken]
    assert any(promise in text for text in broken)
    assert any(line.startswith("  BROKEN") and promise in line for line in said.out.splitlines())
    assert all(f"Broken promise: {text}" in said.err for text in broken)
    assert "Every promise was kept" not in said.out
