"""The pages of the queue run on every database; for those who come from elsewhere, each row of a table has its code."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import reservable
from reservable.queue import moves
from reservable.queue.moves import Attempts, Move
from reservable.queue.statuses import ENDED, Status
from tests.docs.test_snippets import BLOCK, CLAIM, PROJECT, blocks, perform
from tests.stores import DATABASES

GUIDE = PROJECT / "docs" / "queue.md"
STATUS_RETRY_AT = PROJECT / "docs" / "from-status-retry-at.md"
JOB_TRACKER = PROJECT / "docs" / "from-job-tracker.md"

EXPECTED = {
    STATUS_RETRY_AT: [
        "get_queue",
        "claim_for_worker",
        "claim_processing_lock",
        "safe_update",
        "update_and_requeue",
        "pause",
        "resume",
        "bump_retry_at",
        "is_paused",
        "status_counts",
        "extend_choices",
        "FINAL_STATES",
        "StatusField",
        "RetryAtField",
    ],
    JOB_TRACKER: [
        "create",
        "create_and_save",
        "is_locked",
        "lock_it",
        "start",
        "engine",
        "id",
        "pending_status",
        "in_progress_status",
        "failed_status",
        "succeeded_status",
        "ignored_status",
        "expire",
        "max_retry",
        "more_pending_status",
        "traceback_stack_limit",
        "skip_error",
        "debug",
        "Updates.set",
        "update",
        "query_by_status",
    ],
}
"""What there is on the other side."""

ROW = re.compile(
    r"^\| \[`?(?P<theirs>[^`\]]+)`?\]\(#(?P<anchor>[^)]+)\) \| (?P<ours>.+?) \| .*\|$", re.MULTILINE
)
SECTION = re.compile(r"^### (?P<head>.+)$\n(?P<body>(?:(?!^#{1,3} ).*\n)*)", re.MULTILINE)


class Row(NamedTuple):
    page: Path
    theirs: str
    anchor: str
    ours: str

    @property
    def code(self) -> str:
        """The Python of the section that the row leads to."""
        return "".join(block["code"] for block in BLOCK.finditer(sections(self.page)[self.anchor]))


def sections(page: Path) -> dict[str, str]:
    """The text of each section by the anchor of its head."""
    found = SECTION.finditer(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", one["head"].lower()).replace(" ", "-"): one["body"] for one in found}


ROWS = [
    Row(page, found["theirs"], found["anchor"], found["ours"])
    for page in EXPECTED
    for found in ROW.finditer(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page", EXPECTED, ids=lambda page: page.stem)
def test_all_that_there_was_is_in_the_table(page: Path) -> None:
    rows = [row for row in ROWS if row.page == page]
    assert set(EXPECTED[page]) <= {row.theirs for row in rows}
    table = page.read_text(encoding="utf-8").partition("## The table\n")[2].partition("\n### ")[0]
    assert len(rows) == table.count("\n|") - 2, "a row is not of the form that is checked here"
    assert {row.anchor for row in rows} == set(sections(page)), "a section has no row"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.page.stem}-{row.theirs}")
def test_a_row_is_shown_by_code_that_claims_something(row: Row) -> None:
    assert CLAIM.search(row.code), f"nothing is claimed under {row.anchor}"
    for verb in re.findall(r"\w+(?=\()", row.ours) + re.findall(r"\.(\w+)", row.ours):
        assert re.search(rf"\b{verb}\b", row.code), f"the code under {row.anchor} does not use {verb}"


MOVES = {
    "`enqueue(session, at=None)`": [moves.ENQUEUE],
    "`claim`, `start`": [moves.CLAIM],
    "a claim that meets it, `reap`": [moves.EXPIRE],
    "`lease.heartbeat()`": [moves.HEARTBEAT],
    "`lease.complete()`": [moves.COMPLETE],
    "`lease.fail(error)`": [moves.FAIL, moves.FAIL_AND_RETRY],
    "`lease.snooze(delay)`, `lease.release()`": [moves.GIVE_BACK],
    "`lease.cancel(reason)`": [moves.ABANDON],
    "`cancel(session, reason)`": [moves.CANCEL],
    "`pause(session)`": [moves.PAUSE],
    "`resume(session, at=None)`": [moves.RESUME],
    "`retry(session)`": [moves.RETRY],
}
"""The moves that each row of the guide's table tells of."""

COUNTS = {Attempts.SAME: "", Attempts.COUNTED: "+1", Attempts.GIVEN_BACK: "-1", Attempts.NONE: "0"}


def table_of_moves() -> dict[str, list[list[str]]]:
    """The cells of the guide's table by their verbs; a verb may have several rows."""
    text = GUIDE.read_text(encoding="utf-8").partition("\n## The moves\n")[2].partition("\n\nA verb")[0]
    found: dict[str, list[list[str]]] = {}
    for line in text.strip().splitlines()[2:]:
        verb, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        found.setdefault(verb, []).append(cells)
    return found


def test_the_table_of_moves_has_a_row_for_each_verb() -> None:
    assert set(table_of_moves()) == set(MOVES)


@pytest.mark.parametrize(("verb", "move"), [(verb, move) for verb, those in MOVES.items() for move in those])
def test_the_table_of_moves_is_the_one_that_the_queue_goes_by(verb: str, move: Move) -> None:
    rows = table_of_moves()[verb]
    sources, targets, attempts, worker = (" / ".join(cells) for cells in zip(*rows, strict=True))
    for status in Status:
        told = status in sources or (status in ENDED and "ended" in sources)
        told = told or (
            verb.startswith("`enqueue") and status is Status.PENDING and "not scheduled" in sources
        )
        assert told == (status in move.sources), f"{status} in {sources!r}"
    assert move.target in targets
    assert COUNTS[move.attempts] in attempts
    assert bool(attempts.strip(" /")) == (move.attempts is not Attempts.SAME)
    assert ("has lost it" in worker) == (move.new_token and Status.RUNNING in move.sources)


@pytest.mark.parametrize("page", [GUIDE, *EXPECTED], ids=lambda page: page.stem)
@pytest.mark.parametrize("kind", [kind for kind in DATABASES if kind != "sqlite"])
def test_the_page_runs_on_every_database(
    page: Path, kind: str, fresh_database: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RESERVABLE_URL", raising=False)
    reservable.configure(None)
    url = fresh_database(kind)
    addresses = {
        "sqlite:///videos.sqlite": url,
        "sqlite+aiosqlite:///videos.sqlite": url.replace("+pymysql", "+aiomysql"),
    }
    there = re.compile("|".join(map(re.escape, addresses)))
    chosen = [
        block._replace(code=there.sub(lambda found: addresses[found[0]], block.code))
        for block in blocks(page)
        if not block.needs
    ]
    assert any(url in block.code for block in chosen)
    perform(page, chosen, {})
