"""The table on stdout, and the same as JSON and as a picture."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Section

PACKAGES = (
    "reservable",
    "SQLAlchemy",
    "redis",
    "hiredis",
    "psycopg",
    "asyncpg",
    "PyMySQL",
    "python-redis-lock",
    "sherlock",
    "pottery",
    "procrastinate",
    "pgqueuer",
    "uvloop",
)
HEAD = ("contender", "median", "quartiles", "peer", "ratio", "target", "reached")


def write(sections: Sequence[Section], folder: Path) -> None:
    """Print the table, and write it, the JSON and the picture into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    table = "\n".join(_table(sections))
    print(table)
    (folder / "results.txt").write_text(table + "\n")
    told = {
        "machine": machine(),
        "sections": [
            {
                "title": section.title,
                "notes": section.notes,
                "figures": [asdict(figure) | {"reached": figure.reached} for figure in section.figures],
            }
            for section in sections
        ],
    }
    (folder / "results.json").write_text(json.dumps(told, indent=2) + "\n")
    _picture(sections, folder / "results.png")


def machine() -> dict[str, Any]:
    """Where and with what it was measured."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load": [round(load, 1) for load in os.getloadavg()],
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _table(sections: Sequence[Section]) -> Iterator[str]:
    rows = {id(section): [_cells(figure) for figure in section.figures] for section in sections}
    every = [HEAD, *(cells for found in rows.values() for cells in found)]
    widths = [max(len(cells[place]) for cells in every) for place in range(len(HEAD))]
    about = machine()
    yield f"Python {about['python']}, {about['cores']} cores, load {about['load'][0]}; " + ", ".join(
        f"{name} {number}" for name, number in about["packages"].items()
    )
    yield "Ratio: how many times as fast as the peer, the median over interleaved rounds."
    yield ""
    yield _line(HEAD, widths)
    for section in sections:
        yield ""
        yield section.title
        for figure, cells in zip(section.figures, rows[id(section)], strict=True):
            yield _line(cells, widths)
            if figure.note:
                yield f"      {figure.note}"
        for note in section.notes:
            yield f"    ({note})"
    missed = [figure for section in sections for figure in section.figures if figure.reached is False]
    held = [figure for section in sections for figure in section.figures if figure.reached is not None]
    yield ""
    yield f"{len(held) - len(missed)} of {len(held)} targets reached"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    left = {0, 3}
    return (
        "  "
        + "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()
    )


def _cells(figure: Figure) -> tuple[str, ...]:
    spread = " - ".join(_value(bound, figure.unit) for bound in figure.quartiles) if figure.quartiles else ""
    reached = {True: "yes", False: "NO", None: ""}[figure.reached]
    target = "" if figure.target is None else f">= {figure.target:.2f}"
    if figure.at_most and figure.target is not None:
        target = f"<= {_value(figure.target, figure.unit)}"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    return (
        figure.contender,
        _value(figure.value, figure.unit),
        spread,
        figure.peer or "",
        ratio,
        target,
        reached,
    )


def _value(value: float, unit: str) -> str:
    if unit in ("%", "a row"):
        return f"{value:.2f} {unit}"
    if unit != "s":
        return f"{value:,.0f} {unit}"
    if value < 0.001:
        return f"{value * 1e6:.1f} µs"
    return f"{value * 1e3:.2f} ms" if value < 1 else f"{value:.2f} s"


def _picture(sections: Sequence[Section], file: Path) -> None:
    """One bar a claim: how far the ratio is from the peer (1), and the target as a mark."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt
    except ImportError:
        print("(no picture: matplotlib is not installed)")
        return
    shown = [(section, [f for f in section.figures if f.ratio is not None]) for section in sections]
    shown = [(section, figures) for section, figures in shown if figures]
    if not shown:
        return
    columns = [shown[: (len(shown) + 1) // 2], shown[(len(shown) + 1) // 2 :]] if len(shown) > 4 else [shown]
    heights = [[len(figures) + 1.5 for _, figures in column] for column in columns]
    size = (10.0 * len(columns), 0.3 * max(map(sum, heights)) + 0.6)
    figure = plt.figure(figsize=size, layout="constrained")
    figure.suptitle("times as fast as the peer (black mark: target)", fontsize=10)
    for place, (part, column) in enumerate(
        zip(figure.subfigures(1, len(columns), squeeze=False)[0], columns, strict=True)
    ):
        axes = part.subplots(len(column), 1, height_ratios=heights[place], squeeze=False)[:, 0]
        for (section, figures), axis in zip(column, axes, strict=True):
            _bars(axis, section.title, figures)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _bars(axis: Any, title: str, figures: Sequence[Figure]) -> None:
    labels = [f"{f.contender}  /  {f.peer}" for f in figures]
    colors = ["#b23b3b" if f.reached is False else "#3b7a57" if f.reached else "#8a8f98" for f in figures]
    places = range(len(figures))
    axis.barh(places, [f.ratio for f in figures], color=colors, height=0.65)
    for place, one in enumerate(figures):
        assert one.ratio is not None
        axis.text(one.ratio, place, f" {one.ratio:.2f}", va="center", fontsize=8)
        if one.target is not None:
            axis.plot([one.target, one.target], [place - 0.42, place + 0.42], color="black", linewidth=1.5)
    axis.axvline(1, color="black", linewidth=0.6, linestyle=":")
    axis.set_yticks(places, labels, fontsize=8)
    axis.invert_yaxis()
    axis.set_title(title, fontsize=9, loc="left")
    axis.tick_params(axis="x", labelsize=7)
    axis.spines[["top", "right"]].set_visible(False)
    axis.margins(x=0.12)
    if max(f.ratio or 0 for f in figures) > 10:
        axis.set_xscale("log")
