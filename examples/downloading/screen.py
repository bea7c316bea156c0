"""What is shown: with rich where it is installed and a terminal is there, else as plain lines without control characters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from .report import Promise

try:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table
except ImportError:
    rich = False
else:
    rich = True

Rows = Sequence[Sequence[object]]
Show = Callable[[int, str], None]


def fancy() -> bool:
    """Whether there is a terminal that rich can draw on."""
    return rich and sys.stdout.isatty()


@contextmanager
def progress(total: int, unit: str = "files") -> Iterator[Show]:
    """A bar; call what this gives with how many of them are through, and with what is going on."""
    if fancy():
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        with Progress(*columns) as bar:
            task = bar.add_task("", total=total)
            yield lambda done, what: bar.update(task, completed=done, description=escape(what))
        return
    told = {0}

    def tell(done: int, what: str) -> None:
        quarter = done * 4 // total
        if quarter not in told:
            told.add(quarter)
            print(f"{done:>6} of {total} {unit}  {what}", flush=True)

    yield tell


def table(title: str, heads: Sequence[str], rows: Rows) -> None:
    """A table, numbers to the right."""
    lines = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    numbers = [all(isinstance(row[at], int) for row in rows) for at in range(len(heads))]
    if fancy():
        grid = Table(title=title, title_justify="left")
        for head, number in zip(heads, numbers, strict=True):
            grid.add_column(head, justify="right" if number else "left", overflow="fold")
        for line in lines:
            grid.add_row(*map(escape, line), style="red" if line[0] == "BROKEN" else "")
        Console().print("", grid)
        return
    widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
    print(f"\n{title}")
    for line in [list(heads), ["-" * width for width in widths], *lines]:
        cells = zip(line, widths, numbers, strict=True)
        print(
            "  " + "  ".join(cell.rjust(w) if right else cell.ljust(w) for cell, w, right in cells).rstrip()
        )


def verdict(judged: Sequence[Promise], seconds: float) -> int:
    """Show what was promised; 0 when all of it was kept, else 1, with the broken ones named."""
    table("Promises", ["", "promise"], [["BROKEN" if one.broken else "kept", one.text] for one in judged])
    broken = [one for one in judged if one.broken]
    for one in broken:
        _complain(one)
    if not broken:
        print(f"\nEvery promise was kept, in {seconds:.1f} seconds.")
    return 1 if broken else 0


def _complain(promise: Promise) -> None:
    print(f"\nBroken promise: {promise.text}", file=sys.stderr)
    for trouble in promise.broken[:10]:
        print(f"  {trouble}", file=sys.stderr)
    if len(promise.broken) > 10:
        print(f"  and {len(promise.broken) - 10} more", file=sys.stderr)
