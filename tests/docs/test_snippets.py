"""Every Python block of the README and of docs/ runs, top to bottom in one namespace, and says what it claims.

expression  # -> value        the line's value is what stands behind the arrow
<!-- needs: redis -->         in front of a block: it runs where there is such a server, at its address
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Engine

import reservable

PROJECT = Path(__file__).parents[2]
FILES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("**/*.md"))]

IN_ONE_NAMESPACE = [file for file in FILES if file.name != "django.md"]
"""Django's page needs a project: see `test_django_page`."""

BLOCK = re.compile(
    r"(?:^<!-- needs: (?P<needs>[a-z, ]+) -->\n\n?)?^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
CLAIM = re.compile(r"^(?P<indent> *)(?P<expression>[^#\n]*\S) +# -> (?P<value>.+)$", re.MULTILINE)

ADDRESSES = {
    "redis": "redis://localhost:6379/0",
    "postgresql": "postgresql+psycopg://app@localhost/shop",
    "mariadb": "mariadb+pymysql://app@localhost/shop",
}
"""What the pages write where a server is meant."""


class Block(NamedTuple):
    line: int
    needs: tuple[str, ...]
    code: str


def blocks(file: Path) -> list[Block]:
    text = file.read_text(encoding="utf-8")
    return [
        Block(
            text[: found.start("code")].count("\n") + 1,
            tuple(found["needs"].split(", ")) if found["needs"] else (),
            found["code"],
        )
        for found in BLOCK.finditer(text)
    ]


def checked(code: str) -> str:
    """The code, with every claim made into a check on the same line."""
    return CLAIM.sub(r"\g<indent>_claim((\g<expression>), (\g<value>))", code)


def claim(said: object, value: object) -> None:
    assert said == value


@pytest.fixture(autouse=True)
def as_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder to work in, and nothing configured before or after."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RESERVABLE_URL", raising=False)
    reservable.configure(None)
    yield
    reservable.configure(None)


def perform(file: Path, chosen: list[Block], addresses: dict[str, str]) -> None:
    namespace: dict[str, Any] = {"__name__": "snippets", "_claim": claim}
    try:
        for block in chosen:
            code = checked(block.code)
            for kind, address in addresses.items():
                code = code.replace(ADDRESSES[kind], address)
            # As many empty lines in front as the page has, so that a traceback names the page's own line.
            exec(compile("\n" * (block.line - 1) + code, str(file), "exec", dont_inherit=True), namespace)
    finally:
        for value in namespace.values():
            if isinstance(value, Engine):
                value.dispose()


def name(file: Path) -> str:
    return str(file.relative_to(PROJECT))


@pytest.mark.parametrize("file", IN_ONE_NAMESPACE, ids=name)
def test_the_python_of_the_page_runs(file: Path) -> None:
    chosen = [block for block in blocks(file) if not block.needs]
    assert file.read_text(encoding="utf-8").count("```python") == len(blocks(file))
    perform(file, chosen, {})


@pytest.mark.parametrize(
    ("file", "kind"),
    [(file, kind) for file in FILES for kind in ADDRESSES if any(kind in b.needs for b in blocks(file))],
    ids=lambda value: name(value) if isinstance(value, Path) else value,
)
def test_what_needs_a_server_runs_on_one(file: Path, kind: str, fresh_database: Callable[[str], str]) -> None:
    address = fresh_database(kind)
    chosen = [block for block in blocks(file) if not block.needs or block.needs == (kind,)]
    perform(file, chosen, {kind: address})


def test_links_between_the_pages_lead_somewhere() -> None:
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (file.parent / target).exists(), f"{name(file)} links to {target}"
        for page, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", text):
            other = (file.parent / page) if page else file
            heads = re.findall(r"^#+ (.+)$", other.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
            assert anchor in anchors, f"{name(file)} links to {page}#{anchor}, which has {sorted(anchors)}"
