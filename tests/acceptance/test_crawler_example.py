"""The crawler on a queue keeps its promises on every database, and says so when one is broken."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from examples.crawling import report, stage
from examples.crawling.report import Crawled, Run
from examples.crawling.site import BROKEN, LATER, SLOW, Visit
from examples.downloading.report import Worker
from tests.acceptance.examples import must_have_refused, run_example

CRAWLER = "examples/crawler.py"


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mariadb"])
def test_every_promise_is_kept(kind: str, tmp_path: Path, fresh_database: Callable[[str], str]) -> None:
    database = () if kind == "sqlite" else ("--database", fresh_database(kind))
    done = run_example(CRAWLER, *database, temporary=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "Every promise was kept" in done.stdout
    assert re.search(r"good pages +36 +36 +36 +succeeded\n", done.stdout)
    assert re.search(r"always answered with 500 +1 +3 +3 +failed +HTTP Error 500", done.stdout)
    assert re.search(r"worker killed in mid-page +1 +2 +2 +succeeded\n", done.stdout)
    assert re.search(r"paused and resumed +1 +1 +1 +succeeded\n", done.stdout)
    assert len(re.findall(r"^  kept  ", done.stdout, re.MULTILINE)) == 9
    assert list(tmp_path.glob("reservable-demo-*")) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--database", "redis://127.0.0.1:6379"],
        ["--database", "postgresql+psycopg://nobody:secret@127.0.0.1:1/none"],
        ["--workers", "1"],
    ],
)
def test_what_cannot_run_says_why(arguments: list[str], tmp_path: Path) -> None:
    done = run_example(CRAWLER, *arguments, temporary=tmp_path)
    must_have_refused(done, tmp_path)


# What the report says about a run that went wrong: its judge takes any run.


def a_good_run() -> Run:
    def visit(pid: int, at: float, *, whole: bool = True) -> Visit:
        return Visit(f"crawler/{pid}", at, whole)

    failures = tuple(visit(11, at, whole=False) for at in (1.0, 1.4, 2.1))
    return Run(
        pages=[
            Crawled("/", "succeeded", 1, "aa", (), (visit(11, 0.5),)),
            Crawled(BROKEN, "failed", 3, None, ("500", "500", "500"), failures),
            Crawled(SLOW, "succeeded", 2, "bb", (), (visit(12, 1.0, whole=False), visit(11, 3.1))),
            Crawled(LATER, "succeeded", 1, "cc", (), (visit(11, 4.2),)),
        ],
        site={"/": "aa", BROKEN: "dd", SLOW: "bb", LATER: "cc"},
        workers=[Worker(1, 11, 0, 3), Worker(2, 12, -9)],
        victim=12,
        resumed=4.0,
        seconds=5.0,
    )


def doctored(run: Run, path: str, **changes: object) -> Run:
    pages = [replace(page, **changes) if page.path == path else page for page in run.pages]  # type: ignore[arg-type]
    return replace(run, pages=pages)


def test_a_good_run_is_judged_good(capsys: pytest.CaptureFixture[str]) -> None:
    assert stage.conclude(a_good_run()) == 0
    said = capsys.readouterr()
    assert "Every promise was kept" in said.out
    assert said.err == ""


ONCE = Visit("crawler/11", 5.0, whole=True)


@pytest.mark.parametrize(
    ("sabotage", "promise"),
    [
        (lambda run: replace(run, pages=run.pages[1:]), "queued exactly once"),
        (lambda run: replace(run, pages=[*run.pages, run.pages[0]]), "queued exactly once"),
        (lambda run: doctored(run, "/", visits=(ONCE, ONCE)), "fetched exactly once"),
        (lambda run: doctored(run, "/", status="running"), "fetched exactly once"),
        (lambda run: doctored(run, "/", sha256="ff"), "what the site has sent"),
        (lambda run: doctored(run, BROKEN, status="pending"), "has failed after 3 attempts"),
        (lambda run: doctored(run, BROKEN, errors=("500", "500", "lease expired")), "has failed after"),
        (lambda run: doctored(run, BROKEN, visits=(ONCE, ONCE, ONCE)), "left alone"),
        (lambda run: doctored(run, SLOW, visits=(ONCE, ONCE)), "done by another one"),
        (lambda run: doctored(run, SLOW, attempts=1), "done by another one"),
        (lambda run: doctored(run, SLOW, visits=(ONCE, ONCE)), "not before the lease was over"),
        (lambda run: replace(run, resumed=6.0), "after it was resumed"),
        (lambda run: replace(run, victim=None), "ended when they were told to"),
        (lambda run: replace(run, workers=[Worker(1, 11, None), run.workers[1]]), "told to"),
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
    assert all(f"Broken promise: {text}" in said.err for text in broken)
