"""How a program of the examples is run, and what it looks like when it cannot run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def environment(temporary: Path, **more: str) -> dict[str, str]:
    """This process's own, with the checkout to import from and a folder of the test's for what is temporary."""
    path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path, "TMPDIR": str(temporary), "PYTHONIOENCODING": "utf-8", **more}


def run_example(*arguments: str, temporary: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """What became of a program in the checkout, with Python's own arguments before it; `more` is for its environment."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=PROJECT,
        env=environment(temporary, **more),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def must_have_refused(done: subprocess.CompletedProcess[str], temporary: Path) -> None:
    """It said what is wrong in a sentence, without secrets, and has left nothing."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr
    assert list(temporary.iterdir()) == []
