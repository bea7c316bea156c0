"""What `import reservable` costs above a bare interpreter."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.figures import Figure, Section

TARGET = 0.015


def measure(*, rounds: int) -> list[Section]:
    """The median over interleaved runs of both."""
    commands = {"bare": "pass", "ours": "import reservable"}
    took: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 2):
        for name in sorted(commands, reverse=bool(number % 2)):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", commands[name]], check=True)
            if number >= 2:  # the first ones warm the caches, and compile where nobody has imported yet
                took[name].append(time.perf_counter() - start)
    above = [ours - bare for ours, bare in zip(took["ours"], took["bare"], strict=True)]
    low, _, high = statistics.quantiles(above, n=4)
    return [
        Section(
            "import reservable",
            [
                Figure(
                    "ours, above the bare interpreter",
                    statistics.median(above),
                    "s",
                    quartiles=(low, high),
                    rounds=rounds,
                    target=TARGET,
                    at_most=True,
                ),
                Figure("the bare interpreter", statistics.median(took["bare"]), "s", rounds=rounds),
            ],
        )
    ]
