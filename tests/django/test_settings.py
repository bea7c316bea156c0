from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import pytest

import reservable
import reservable.config
from reservable import ConfigurationError
from reservable.backends.memory import MemoryBackend
from tests.django.project import pointed

NOTHING = None

pytestmark = pytest.mark.usefixtures("sqlite")


def video() -> Any:
    from tests.django.shop.models import Video

    return Video.objects.create()


def problems() -> list[Any]:
    from django.core.checks import run_checks

    return [found for found in run_checks() if str(found.id).startswith("reservable.")]


def test_nothing_set_is_nothing_wrong() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("redis://localhost", "RESERVABLE is str"),
        ({"URl": "redis://localhost"}, "RESERVABLE['URl']"),
        ({"URL": 5}, "RESERVABLE['URL']"),
        ({"URL": "nonsense://localhost"}, "RESERVABLE['URL']"),
        ({"URL": "redis://localhost", "BACKEND": MemoryBackend()}, "both 'URL' and 'BACKEND'"),
        ({"BACKEND": object()}, "RESERVABLE['BACKEND']"),
        ({"BACKEND": "no.such.thing"}, "RESERVABLE['BACKEND']"),
        ({"BACKEND": lambda: 1 / 0}, "RESERVABLE['BACKEND'] cannot be called: ZeroDivisionError"),
        ({"BACKEND": lambda: None}, "RESERVABLE['BACKEND'] gave None"),
        ({"BACKEND": object}, "RESERVABLE['BACKEND']: "),
        ({"BACKEND": lambda: "nonsense://localhost"}, "RESERVABLE['BACKEND']: "),
        ({"BACKEND": f"{__name__}.NOTHING"}, "RESERVABLE['BACKEND'] gave None"),
        ({"BACKEND": "tests.django.broken.backend"}, "RESERVABLE['BACKEND'] cannot be imported: NameError"),
        ({"PREFIX": "a b"}, "RESERVABLE['PREFIX']"),
        ({"OWNER": 5}, "RESERVABLE['OWNER']"),
        ({"NOTIFY": "yes"}, "RESERVABLE['NOTIFY']"),
        ({"NOTIFY": True}, "PostgreSQL"),
    ],
)
def test_what_cannot_work_is_said_by_name_and_nothing_is_reserved_elsewhere(value: Any, named: str) -> None:
    from django.test import override_settings

    one = video()
    with override_settings(RESERVABLE=value):
        found = problems()
        assert [problem.id for problem in found][:1] in (["reservable.E001"], ["reservable.E002"])
        assert named in found[0].msg
        with pytest.raises(ConfigurationError):
            one.reserve("k")
    assert problems() == []
    assert one.reserve("k")


@pytest.mark.parametrize("value", [None, {"PREFIX": "shop:"}])
def test_a_bad_url_in_the_environment_is_blamed_itself(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.core.checks import run_checks
    from django.test import override_settings

    one = video()
    monkeypatch.setenv("RESERVABLE_URL", "nonsense://localhost")
    monkeypatch.setattr(reservable.config, "_settings", None)
    with override_settings(**({} if value is None else {"RESERVABLE": value})):
        for found in (problems(), run_checks(databases=["default"])):
            [problem] = [one for one in found if str(one.id).startswith("reservable.")]
            assert problem.msg.startswith("RESERVABLE_URL in the environment: ")
        with pytest.raises(ConfigurationError, match=r"^RESERVABLE_URL in the environment: "):
            one.reserve("k")
        monkeypatch.delenv("RESERVABLE_URL")


def test_a_url_with_a_prefix_and_an_owner(fresh_database: Callable[[str], str]) -> None:
    from django.test import override_settings

    one, url = video(), fresh_database("redis")
    with override_settings(RESERVABLE={"URL": url, "PREFIX": "shop:", "OWNER": "me"}):
        assert problems() == []
        with one.reservation("k") as held:
            assert held.holder().owner == "me"
            assert [other.name for other in reservable.configure(url, prefix="shop:").list()] == [held.name]


@pytest.mark.parametrize("how", ["instance", "function", "path"])
def test_a_backend_or_client_by_itself_by_a_function_or_by_its_path(how: str) -> None:
    import fakeredis
    from django.test import override_settings

    client = fakeredis.FakeRedis()
    where: Any = {"instance": client, "function": lambda: client, "path": f"{__name__}.make"}[how]
    if how == "path":
        where = "reservable.backends.memory.MemoryBackend"
    one = video()
    with override_settings(RESERVABLE={"BACKEND": where}):
        assert one.reserve("k")
        if how != "path":
            assert client.keys() == [f"shop.video:{one.pk}:k".encode()]
    assert not one.is_reserved("k")


def test_names_without_a_model_live_in_the_projects_database() -> None:
    from reservable.django.models import Reservation

    with reservable.reservation("nightly-report", "1h"):
        assert Reservation.objects.filter(until__gt=0).get().name == "nightly-report"
        with pytest.raises(reservable.AlreadyReserved), reservable.reservation("nightly-report"):
            raise AssertionError


def test_a_prefix_for_the_projects_database() -> None:
    from django.test import override_settings

    one = video()
    with override_settings(RESERVABLE={"PREFIX": "shop:"}):
        assert one.reserve("k")
        assert list(type(one).objects.reserved("k")) == [one]
        from reservable.django.models import Reservation

        assert Reservation.objects.get().name == f"shop:shop.video:{one.pk}:k"
    assert one.reserve("k")


def test_a_model_may_have_a_store_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    one = video()
    backend = MemoryBackend()
    monkeypatch.setattr(type(one), "__reservable_backend__", backend, raising=False)
    assert one.reserve("k")
    assert [held.name for held in backend.list()] == [f"shop.video:{one.pk}:k"]


def test_a_missing_table_is_a_warning_where_databases_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.core.checks import run_checks
    from django.db import connection
    from django.db.migrations.recorder import MigrationRecorder

    def warnings() -> list[Any]:
        return [found for found in run_checks(databases=["default"]) if "W001" in str(found.id)]

    recorder = MigrationRecorder(connection)
    assert warnings() == []
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE reservations RENAME TO away")
    try:
        for command in ("check", "migrate"):
            monkeypatch.setattr(sys, "argv", ["manage.py", command])
            [found] = warnings()
            assert "migrate --fake reservable zero" in str(found.hint)
        recorder.record_unapplied("reservable", "0001_initial")
        assert warnings() == []  # which is about to make it
        monkeypatch.setattr(sys, "argv", ["manage.py", "check"])
        [found] = warnings()
        assert found.hint == "Run manage.py migrate."
        reservable.configure("memory://")
        assert warnings() == []
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE away RENAME TO reservations")
        if ("reservable", "0001_initial") not in recorder.applied_migrations():
            recorder.record_applied("reservable", "0001_initial")


def test_a_table_that_is_missing_after_its_migration_comes_back_as_the_check_says(tmp_path: Any) -> None:
    from django.core.management import call_command
    from django.db import connections

    connections.databases["fresh"] = {**connections.databases["default"], "NAME": str(tmp_path / "fresh")}
    try:
        with pointed(writes="fresh"):
            migrate = ("migrate", "reservable")
            call_command(*migrate, database="fresh", verbosity=0)
            with connections["fresh"].cursor() as cursor:
                cursor.execute("DROP TABLE reservations")
            call_command(*migrate, "zero", fake=True, database="fresh", verbosity=0)
            call_command(*migrate, database="fresh", verbosity=0)
            assert "reservations" in connections["fresh"].introspection.table_names()
    finally:
        connections["fresh"].close()
        del connections["fresh"]
        del connections.databases["fresh"]


def test_two_tables_with_one_name_are_a_warning_and_classes_of_one_table_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from reservable.django import identity
    from tests.django.shop.models import Book, Named, Ticket, Video

    monkeypatch.setattr(identity, "_identities", WeakKeyDictionary())
    monkeypatch.setattr(Video, "__reservable_name__", "media", raising=False)  # and of its proxy and child
    assert problems() == []
    monkeypatch.setattr(identity, "_identities", WeakKeyDictionary())
    monkeypatch.setattr(Named, "__reservable_name__", "things", raising=False)
    [found] = problems()
    assert found.id == "reservable.W003"
    assert "shop.Book and shop.Ticket" in found.msg
    assert "'things'" in found.msg
    assert found.obj is Ticket
    monkeypatch.setattr(identity, "_identities", WeakKeyDictionary())
    monkeypatch.setattr(Book, "__reservable_name__", "books", raising=False)
    assert problems() == []


@pytest.mark.parametrize(
    ("attribute", "value"), [("__reservable_name__", "other"), ("__reservable_backend__", "memory://")]
)
def test_only_the_root_of_shared_rows_says_how_they_are_called_and_where_they_live(
    project: object, monkeypatch: pytest.MonkeyPatch, attribute: str, value: str
) -> None:
    from reservable.django.identity import RowIdentity
    from tests.django.shop.models import Short, Video

    monkeypatch.setattr(Short, attribute, value, raising=False)
    with pytest.raises(ConfigurationError, match=f"{attribute}: set it on Video"):
        RowIdentity(Short)
    monkeypatch.setattr(Video, attribute, value, raising=False)
    assert RowIdentity(Short).model == RowIdentity(Video).model
