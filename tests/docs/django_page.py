"""The page on Django as a project of its own, in a process of its own: `python -m tests.docs.django_page <folder>`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.test_snippets import PROJECT, blocks, perform

PAGE = PROJECT / "docs" / "django.md"

FILE = re.compile(
    r"^<!-- (?P<how>file|add): (?P<path>\S+) -->\n```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
COMMAND = re.compile(
    r"^    (?P<command>django-admin|python manage\.py) (?P<arguments>[^#\n]+)$", re.MULTILINE
)


def build(folder: Path) -> list[str]:
    """Make the project as the page says, by its commands and its files; the code of the files."""
    page = PAGE.read_text(encoding="utf-8")
    before, steps, _ = re.split(r"^## (?=Set up|A management command)", page, flags=re.MULTILINE)
    assert "startproject" not in before
    made, tables = steps.split("startapp crawler", 1)
    perform_commands(made + "startapp crawler\n", folder)
    found = list(FILE.finditer(page))
    for one in found:
        path = folder / one["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if one["how"] == "add" else "w", encoding="utf-8") as file:
            file.write(one["code"])
    perform_commands(tables, folder)
    return [one["code"] for one in found]


def perform_commands(text: str, folder: Path) -> None:
    """Run the commands as they are printed; nothing may be warned of."""
    programs = {"django-admin": ["-m", "django"], "python manage.py": ["manage.py"]}
    found = list(COMMAND.finditer(text))
    assert found
    for one in found:
        done = subprocess.run(
            [sys.executable, *programs[one["command"]], *one["arguments"].split()],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, filter(None, sys.path)))},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert not done.stderr


def main(folder: Path) -> None:
    written = build(folder)
    sys.path.insert(0, str(folder))
    os.chdir(folder)
    os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
    import django

    django.setup()
    chosen = [block for block in blocks(PAGE) if block.code not in written]
    assert len(chosen) + len(written) == len(blocks(PAGE))
    assert len(chosen) > 5
    perform(PAGE, chosen, {})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
