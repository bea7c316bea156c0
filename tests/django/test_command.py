"""manage.py reservable, with reservations in Django's database, in Redis and in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
import redis

import reservable
from reservable.config import backend_for
from tests.server_process import free_port
from tests.servers import start_redis
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("sqlite")

TOKEN = "bf9e1f3a57c24d6e8a90"

HOUR = timedelta(hours=1)


@pytest.fixture(params=["table", "redis", "memory"])
def store(request: pytest.FixtureRequest, sqlite: str, fresh_database: Callable[[str], str]) -> Iterator[str]:
    """Each kind of store in turn."""
    from django.test import override_settings

    urls = {"redis": lambda: fresh_database("redis"), "memory": lambda: "memory://"}
    if request.param == "table":
        yield "table"
    else:
        with override_settings(RESERVABLE={"URL": urls[request.param]()}):
            yield request.param


def run(*arguments: str, out: StringIO | None = None, err: StringIO | None = None) -> str:
    from django.core.management import call_command

    out = out or StringIO()
    call_command("reservable", *arguments, stdout=out, stderr=err)
    return out.getvalue()


def refused(*arguments: str, out: StringIO | None = None) -> str:
    """What the command says when it fails; with 1, as every other command."""
    from django.core.management.base import CommandError

    with pytest.raises(CommandError) as raised:
        run(*arguments, out=out)
    assert raised.value.returncode == 1
    return str(raised.value)


def held(name: str, owner: str = "me", lifetime: timedelta = HOUR) -> int:
    """Reserve the name; its fence."""
    grant = backend_for().acquire(name, TOKEN + name, owner, lifetime)
    assert grant is not None
    return grant.fence


def video() -> Any:
    from tests.django.shop.models import Video

    return Video.objects.create()


def facts(text: str) -> dict[str, str]:
    return {line[:11].strip(): line[11:] for line in text.splitlines()}


def test_list(store: str) -> None:
    for name in ("shop.video:10:k", "shop.video:9:k", "shop.book:a:k", "report"):
        held(name)
    lines = [line.split("\t") for line in run("list").splitlines()]
    assert [line[0] for line in lines] == ["report", "shop.book:a:k", "shop.video:9:k", "shop.video:10:k"]
    assert {line[1] for line in lines} == {"me"}
    assert all(line[2].endswith("+00:00") for line in lines)
    assert [line.split("\t")[0] for line in run("list", "shop.video:*").splitlines()] == [
        "shop.video:9:k",
        "shop.video:10:k",
    ]
    assert run("list", "nothing*") == ""


def test_show_tells_all_but_the_token(store: str) -> None:
    one = video()
    name = f"shop.video:{one.pk}:down%20load"
    fence = held(name, "host:17")
    text = run("show", name)
    found = facts(text)
    holder = backend_for().holder(name)
    assert holder is not None
    assert found["name"] == name
    assert found["model"] == "shop.Video"
    assert found["object"] == f"{one.pk} ({one})"
    assert found["key"] == "down load"
    assert found["owner"] == "host:17"
    assert found["since"] == holder.since.isoformat(timespec="seconds")
    assert found["until"] == holder.until.isoformat(timespec="seconds")
    assert found["time left"].startswith("0:59:5")
    assert found["fence"] == str(fence)
    assert "Backend" in found["store"] or "StandIn" in found["store"]
    assert TOKEN not in text


def test_show_of_what_has_no_row_or_no_model_and_of_what_nobody_holds(store: str) -> None:
    held("shop.video:99:k")
    held("videos:7:k")
    held("report")
    assert facts(run("show", "shop.video:99:k"))["object"] == "99 (no such row)"
    assert facts(run("show", "videos:7:k"))["model"] == "videos"
    assert "model" not in facts(run("show", "report"))
    assert refused("show", "shop.video:1:k") == "nobody holds shop.video:1:k"


def test_release(store: str) -> None:
    one = video()
    assert one.reserve("k", "1h")
    name = f"shop.video:{one.pk}:k"
    assert run("release", name).startswith(f"released {name}, held by ")
    assert not one.is_reserved("k")
    assert refused("release", name) == f"nobody holds {name}"


def test_release_of_one_grant_and_of_no_other(store: str) -> None:
    fence = held("report")
    assert refused("release", "report", "--fence", str(fence + 1)) == (
        f"report is held by another grant, with the fence {fence}: it was left alone"
    )
    assert backend_for().holder("report") is not None
    assert run("release", "report", "--fence", str(fence)) == "released report, held by me\n"
    assert backend_for().holder("report") is None


def test_owners_cannot_play_with_the_terminal() -> None:
    from django.test import override_settings

    with override_settings(RESERVABLE={"URL": "memory://"}):
        held("report", "Zoë\x1b[2J\nreport2\tnobody")
        for text in (run("list"), run("show", "report"), run("release", "report")):
            assert "\x1b" not in text
            assert "Zoë\\x1b[2J\\nreport2\\tnobody" in text


def test_prune(store: str) -> None:
    held("report", lifetime=timedelta(milliseconds=30))
    held("other")
    eventually(lambda: backend_for().holder("report") is None)
    assert run("prune") == ("removed 0\n" if store == "redis" else "removed 1\n")
    assert run("prune") == "removed 0\n"
    assert backend_for().holder("other") is not None


SERVERS = {"table": "SQLite 3.", "redis": "Redis "}


def test_check(store: str) -> None:
    assert facts(run("check"))["reserved"] == "0"
    held("report")
    found = facts(run("check"))
    assert found["reserved"] == "1"
    assert found["serves"].startswith("shop.Video, ")
    assert found["serves"].endswith(", names without a model")
    assert found.get("server", "").startswith(SERVERS.get(store, ""))
    assert ("server" in found) == (store in SERVERS)


def test_check_on_a_server(alias: str) -> None:
    labels = {"default": "SQLite", "postgresql": "PostgreSQL", "mariadb": "MariaDB"}
    label, version = facts(run("check"))["server"].split()
    assert label == labels[alias]
    assert version[0].isdigit()


def test_check_of_stores_of_single_models(
    monkeypatch: pytest.MonkeyPatch, fresh_database: Callable[[str], str]
) -> None:
    from tests.django.shop.models import Book

    monkeypatch.setattr(Book, "__reservable_backend__", fresh_database("redis"), raising=False)
    book = Book.objects.create(code="b")
    assert book.reserve("k")
    first, second = run("check").split("store")[1:]
    assert "shop.Book" not in first
    assert "serves     shop.Book\n" in second
    assert "reserved   1\n" in second
    assert run("list").startswith("shop.book:b:k\t")
    assert run("release", "shop.book:b:k").startswith("released")
    assert not book.is_reserved("k")


def test_a_store_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.django.shop.models import Book

    nowhere = f"redis://:secret@127.0.0.1:{free_port()}/0"
    monkeypatch.setattr(Book, "__reservable_backend__", nowhere, raising=False)
    held("report")
    for verb in ("check", "list", "show x", "release x"):
        message = refused(*verb.split())
        assert message.startswith("Redis: ")
        assert "secret" not in message
    for verb, expected in (("show", "report"), ("release", "released report")):
        err = StringIO()
        assert expected in run(verb, "report", err=err)
        assert err.getvalue().startswith("Redis: ")
        assert "secret" not in err.getvalue()


def test_prune_goes_on_with_the_stores_that_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.db import connection

    from reservable.backends.memory import MemoryBackend
    from tests.django.shop.models import Book

    memory = MemoryBackend()
    monkeypatch.setattr(Book, "__reservable_backend__", memory, raising=False)
    assert memory.acquire("x", "t", "o", timedelta(milliseconds=1)) is not None
    eventually(lambda: memory.holder("x") is None)
    out = StringIO()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE reservations RENAME TO away")
    try:
        assert "manage.py migrate" in refused("prune", out=out)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE away RENAME TO reservations")
    assert out.getvalue() == "removed 1\n"
    assert memory.prune() == 0


def test_what_can_be_listed_is_listed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.core.management import call_command
    from django.core.management.base import CommandError

    from tests.django.shop.models import Book

    monkeypatch.setattr(Book, "__reservable_backend__", f"redis://127.0.0.1:{free_port()}/0", raising=False)
    held("report")
    for verb, expected in (("list", "report\tme"), ("check", "reserved   1")):
        out = StringIO()
        with pytest.raises(CommandError):
            call_command("reservable", verb, stdout=out)
        assert expected in out.getvalue()


def test_a_setting_that_cannot_work() -> None:
    from django.test import override_settings

    with override_settings(RESERVABLE={"URL": "nonsense://there"}):
        for verb in ("check", "list", "show x", "release x", "prune"):
            assert "RESERVABLE['URL']" in refused(*verb.split())


def test_a_missing_table_says_what_to_run() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE reservations RENAME TO away")
    try:
        for verb in ("check", "list", "show x", "release x", "prune"):
            assert "manage.py migrate" in refused(*verb.split())
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE away RENAME TO reservations")


def test_a_redis_that_throws_keys_away_is_a_warning_before_a_deployment() -> None:
    from django.core.checks import run_checks
    from django.test import override_settings

    def warnings(*, deploy: bool) -> list[Any]:
        return [
            found for found in run_checks(include_deployment_checks=deploy) if found.id == "reservable.W002"
        ]

    with start_redis() as server, override_settings(RESERVABLE={"URL": server.url}):
        assert warnings(deploy=True) == []
        with redis.Redis.from_url(server.url) as admin:
            admin.config_set("maxmemory", "100mb")
            assert warnings(deploy=True) == []
            run("check")
            admin.config_set("maxmemory-policy", "volatile-ttl")
        [found] = warnings(deploy=True)
        assert "volatile-ttl" in found.msg
        assert "noeviction" in found.hint
        assert warnings(deploy=False) == []  # which asks nobody
        assert "volatile-ttl" in refused("check")
        server.stop()
        assert warnings(deploy=True) == []  # tells nothing, and stops no deployment
    assert warnings(deploy=True) == []


def test_no_verb_or_an_unknown_one_is_a_usage(capsys: pytest.CaptureFixture[str]) -> None:
    from django.core.management import execute_from_command_line

    for arguments in ([], ["destroy"], ["show"], ["release", "x", "--fence", "y"]):
        with pytest.raises(SystemExit) as ended:
            execute_from_command_line(["manage.py", "reservable", *arguments])
        assert ended.value.code == 2
        assert "usage: manage.py reservable" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["list", "show", "release"])
def test_bytes_that_are_no_text_are_a_usage(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    from django.core.management import execute_from_command_line

    with pytest.raises(SystemExit) as ended:
        execute_from_command_line(["manage.py", "reservable", verb, "shop.video:\udcff:k"])
    assert ended.value.code == 2
    assert "this is not UTF-8: shop.video:\\udcff:k" in capsys.readouterr().err


def test_from_the_command_line_what_went_wrong_is_said_without_a_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from django.core.management import execute_from_command_line

    with reservable.reservation("report", "1h"):
        execute_from_command_line(["manage.py", "reservable", "show", "report"])
        assert "report" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        execute_from_command_line(["manage.py", "reservable", "show", "report"])
    assert ended.value.code == 1
    assert capsys.readouterr().err == "CommandError: nobody holds report\n"
