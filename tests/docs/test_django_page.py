"""The page on Django runs: its files make a project, and its other blocks run in it and say what they claim."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.test_snippets import PROJECT


def test_the_page_on_django_runs_in_a_project_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.docs.django_page", str(tmp_path)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
