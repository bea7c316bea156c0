"""Models that use the mixins in a project without the app of the table."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

MODELS = {
    "shop": """
        from django.db import models
        from reservable.django import Queued, Reservable

        class Video(Reservable, models.Model):
            path = models.CharField(max_length=50, default="")

        class Both(Reservable, Queued):
            pass
        """,
    "crawler": """
        from reservable.django import Queued

        class Crawl(Queued):
            pass
        """,
}

SETTINGS = """
import django
import reservable
from django.conf import settings
from django.core.checks import run_checks
from django.core.management import call_command
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "project.sqlite"}},
    INSTALLED_APPS=["shop", "crawler"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
)
django.setup()
from shop.models import Both, Video
from crawler.models import Crawl

def found():
    return [(one.id, one.obj) for one in run_checks()]

call_command("migrate", run_syncdb=True, verbosity=0)
video, both = Video.objects.create(), Both.objects.create()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for app, models in MODELS.items():
        (tmp_path / app).mkdir()
        (tmp_path / app / "__init__.py").touch()
        (tmp_path / app / "models.py").write_text(textwrap.dedent(models))
    return tmp_path


def run(folder: Path, code: str, **environment: str) -> None:
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[2])])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SETTINGS + textwrap.dedent(code)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_check_and_every_call_say_so_and_nothing_is_touched(folder: Path) -> None:
    run(
        folder,
        """
        assert found() == [("reservable.E004", Video), ("reservable.E004", Both)], found()
        calls = [
            lambda: video.reserve("k"),
            lambda: video.release("k"),
            lambda: video.is_reserved("k"),
            lambda: Video.objects.first_reserved("k"),
            lambda: Video.objects.unreserved("k").count(),
            lambda: Both.objects.unreserved("k").claim(),
        ]
        for call in calls:
            try:
                call()
            except reservable.ConfigurationError as error:
                assert "'reservable.django' is not in INSTALLED_APPS" in str(error), error
            else:
                raise AssertionError(call)
        both.refresh_from_db()
        assert both.status == "pending"
        """,
    )


def test_where_the_table_is_not_needed_all_is_well(folder: Path) -> None:
    run(
        folder,
        """
        Crawl.objects.create()
        [lease] = Crawl.objects.claim()
        lease.complete()
        reservable.configure("memory://")
        assert found() == []
        assert video.reserve("k")
        assert Video.objects.first_reserved("k") is None
        reservable.configure(None)
        Video.__reservable_backend__ = "memory://"
        assert found() == [("reservable.E004", Both)]
        assert video.reserve("k")
        """,
    )
    run(folder, "assert found() == []; assert video.reserve('k')", RESERVABLE_URL="memory://")


def test_a_store_that_cannot_work_is_told_as_that(folder: Path) -> None:
    run(
        folder,
        """
        assert found() == []
        try:
            video.reserve("k")
        except reservable.ConfigurationError as error:
            assert "RESERVABLE_URL" in str(error), error
        else:
            raise AssertionError
        """,
        RESERVABLE_URL="nonsense://there",
    )
