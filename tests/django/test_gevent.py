"""Workers of gevent's under Django: everything that blocks lets the other greenlets go on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.django.conftest import ALIASES
from tests.django.project import pointed
from tests.django.test_contract import plain

pytestmark = pytest.mark.usefixtures("clean")

ROOT = Path(__file__).resolve().parents[2]


def in_gevent(what: str, project: Any, alias: str, url: str | None = None) -> None:
    where = {"databases": plain(project), "alias": alias, "url": url}
    ended = subprocess.run(
        [sys.executable, "-m", "tests.django.greenlets", what, json.dumps(where)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (ended.stdout, ended.returncode) == ("well\n", 0), ended.stderr


@pytest.mark.parametrize("what", ["race", "wait", "renew"])
@pytest.mark.parametrize("store", ["sqlite", "postgresql", "redis"])
def test_reservations(
    what: str,
    store: str,
    project: Any,
    fresh_database: Callable[[str], str],
    request: pytest.FixtureRequest,
) -> None:
    url = fresh_database("redis") if store == "redis" else None
    alias = ALIASES.get(store, "default")
    if alias not in project:
        request.getfixturevalue(f"{store}_url")  # skips, and says which server is missing
    with pointed(writes=alias):
        from tests.django.shop.models import Video

        assert not Video.objects.exists()  # and its rows are taken away at the end
        in_gevent(what, project, alias, url)


@pytest.mark.parametrize("alias", ["sqlite", "postgresql"], indirect=True)
def test_a_queue(alias: str, project: Any) -> None:
    from tests.django.shop.models import Job

    assert not Job.objects.exists()
    in_gevent("queue", project, alias)
