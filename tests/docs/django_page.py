"""The page on Django as a project of its own, in a process of its own: `python -m tests.docs.django_page <folder>`."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tests.docs.test_snippets import PROJECT, blocks, perform

PAGE = PROJECT / "docs" / "django.md"

FILE = re.compile(r"^<!-- file: (?P<path>\S+) -->\n```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def build(folder: Path) -> list[str]:
    """Write the files that the page shows; their code."""
    found = list(FILE.finditer(PAGE.read_text(encoding="utf-8")))
    for one in found:
        path = folder / one["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(one["code"], encoding="utf-8")
    for package in {parent for one in found for parent in Path(one["path"]).parents if parent.name}:
        (folder / package / "__init__.py").touch()
    return [one["code"] for one in found]


def main(folder: Path) -> None:
    written = build(folder)
    sys.path.insert(0, str(folder))
    os.chdir(folder)
    os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
    import django
    from django.conf import settings
    from django.core.management import call_command

    settings.DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)
    chosen = [block for block in blocks(PAGE) if block.code not in written]
    assert len(chosen) + len(written) == len(blocks(PAGE))
    assert len(chosen) > 5
    perform(PAGE, chosen, {})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
