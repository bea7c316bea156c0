from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, inspect, text

from reservable.backends.database import DatabaseBackend
from tests.django.opening import open_django
from tests.django.project import database, pointed

DATABASES = ["sqlite", "postgresql", "mariadb"]


@pytest.fixture(params=DATABASES)
def empty(request: pytest.FixtureRequest, closed: None, fresh_database: Callable[[str], str]) -> Any:
    """A fresh database, by its URL and as the alias `fresh`."""
    from django.db import connections

    url = fresh_database(request.param)
    connections.databases["fresh"] = {**connections.databases["default"], **database(url)}
    with pointed(writes="fresh"):
        yield url
    connections["fresh"].close()
    del connections["fresh"]
    del connections.databases["fresh"]


def migrate(*arguments: str) -> None:
    from django.core.management import call_command

    call_command("migrate", "reservable", *arguments, database="fresh", verbosity=0, skip_checks=True)


def layout(engine: Engine) -> Any:
    """All that the database says of the table."""
    queries = {
        "sqlite": "SELECT trim(replace(replace(replace(sql, char(10), ' '), char(9), ''), '  ', ' ')) FROM sqlite_master WHERE name = 'reservations'",
        "postgresql": "SELECT attname, atttypid, atttypmod, attnotnull, attcollation FROM pg_attribute "
        "WHERE attrelid = 'reservations'::regclass AND attnum > 0 ORDER BY attnum",
        "mariadb": "SHOW CREATE TABLE reservations",
    }
    with engine.connect() as connection:
        rows = connection.execute(text(queries[engine.url.get_backend_name()])).all()
        return (
            rows,
            inspect(connection).get_pk_constraint("reservations"),
            inspect(connection).get_indexes("reservations"),
        )


def test_the_table_is_the_one_that_sqlalchemys_side_makes(
    empty: str, make_engine: Callable[..., Engine], fresh_database: Callable[[str], str]
) -> None:
    migrate()
    ours = make_engine(empty)
    theirs = make_engine(fresh_database(ours.url.get_backend_name()))
    DatabaseBackend(theirs).holder("x")  # makes it
    assert layout(ours) == layout(theirs)


def test_a_table_that_is_there_is_adopted_and_served_by_both(
    empty: str, make_engine: Callable[..., Engine]
) -> None:
    from datetime import timedelta

    from reservable.django import DjangoBackend

    theirs = DatabaseBackend(make_engine(empty))
    assert theirs.acquire("shop.video:1:k", "theirs", "sqlalchemy", timedelta(hours=1)) is not None
    before = layout(make_engine(empty))
    migrate()
    assert layout(make_engine(empty)) == before
    ours = DjangoBackend("fresh")
    assert ours.acquire("shop.video:1:k", "ours", "django", timedelta(hours=1)) is None
    held = ours.holder("shop.video:1:k")
    assert held is not None
    assert held.owner == "sqlalchemy"
    assert ours.acquire("shop.video:2:k", "ours", "django", timedelta(hours=1)) is not None
    assert theirs.acquire("shop.video:2:k", "theirs", "sqlalchemy", timedelta(hours=1)) is None


def test_a_missing_table_says_what_to_run_and_is_never_made(empty: str) -> None:
    from datetime import timedelta

    from django.db import transaction

    from reservable import ConfigurationError
    from reservable.django import DjangoBackend

    backend = DjangoBackend("fresh")
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="migrate --database=fresh"):
            backend.acquire("n", "t", "o", timedelta(hours=1))
    with transaction.atomic(using="fresh"), pytest.raises(ConfigurationError):
        backend.holder("n")
    migrate()
    assert backend.holder("n") is None


def test_it_can_be_undone_and_written_as_sql(empty: str, make_engine: Callable[..., Engine]) -> None:
    from io import StringIO

    from django.core.management import call_command

    out = StringIO()
    call_command("sqlmigrate", "reservable", "0001", database="fresh", stdout=out)
    assert "CREATE TABLE IF NOT EXISTS reservations" in out.getvalue()
    migrate()
    assert inspect(make_engine(empty)).has_table("reservations")
    migrate("zero")
    assert not inspect(make_engine(empty)).has_table("reservations")


def test_without_migrations_djangos_own_table_serves_as_well(empty: str) -> None:
    """MIGRATION_MODULES = {"reservable": None}, as some projects have it for their tests."""
    from datetime import timedelta

    from django.db import connections

    from reservable.django import DjangoBackend
    from reservable.django.models import Reservation

    with connections["fresh"].schema_editor() as editor:
        editor.create_model(Reservation)
    backend = DjangoBackend("fresh")
    for token in ("a", "A"):
        assert backend.acquire(f"shop.video:1:{token}", token, "o", timedelta(hours=1)) is not None
    assert backend.extend("shop.video:1:a", "A", timedelta(hours=2)) is None


SETTINGS = [
    {},
    {"DEFAULT_AUTO_FIELD": "django.db.models.AutoField"},
    {"DEFAULT_AUTO_FIELD": "django.db.models.SmallAutoField", "LANGUAGE_CODE": "de", "USE_I18N": True},
    {"USE_TZ": False, "TIME_ZONE": "Pacific/Kiritimati", "LANGUAGE_CODE": "ar"},
]

CODE = """
import json, sys
from tests.django.project import configure
configure({"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}},
    **{**json.loads(sys.argv[2]), "INSTALLED_APPS": ["reservable.django", "tests.django.shop"]})
from django.core.management import call_command
call_command("migrate", verbosity=0)
call_command("makemigrations", check=True, dry_run=True)
call_command("check", fail_level="WARNING", databases=["default"])
"""


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_makemigrations_has_nothing_to_say(settings: dict[str, Any], tmp_path: Any) -> None:
    import json

    arguments = [str(tmp_path / "db.sqlite"), json.dumps(settings)]
    done = subprocess.run(  # noqa: PLW1510 - its output is what is to be seen
        [sys.executable, "-W", "error", "-c", CODE, *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No changes detected" in done.stdout


def test_django_does_not_fear_for_the_length_of_the_key(alias: str) -> None:
    """mysql.W003; our column is sound by its own collation, and any other one is warned of still."""
    from django.apps.registry import Apps
    from django.core.checks import run_checks
    from django.db import models

    from reservable.django.models import Reservation

    class Long(models.Model):
        name = models.CharField(max_length=831, primary_key=True)

        class Meta:
            app_label = "shop"
            apps = Apps()

    [*of_others] = Long._meta.get_field("name").check(databases=[alias])
    assert [found.id for found in of_others] == (["mysql.W003"] if alias == "mariadb" else [])
    ours = [
        found for found in run_checks(databases=[alias]) if getattr(found.obj, "model", None) is Reservation
    ]
    assert ours == []


def test_another_process_needs_no_more_than_the_settings(project: Any, closed: None) -> None:
    assert open_django(project, "default", "reservations").holder("n") is None
