"""The Django site of the examples keeps its promises, and says so when one is broken."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest

from examples.django_demo import Outcome, promises
from tests.acceptance.examples import PROJECT, environment, run_example

DEMO = "examples/django_demo.py"
MANAGE = str(PROJECT / "examples" / "django_site" / "manage.py")


def test_every_promise_is_kept(tmp_path: Path) -> None:
    done = run_example(DEMO, temporary=tmp_path, SITE_FOLDER=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every promise was kept." in done.stdout
    assert len(re.findall(r"^  kept    ", done.stdout, re.MULTILINE)) == 7
    assert (
        len(
            re.findall(
                r"^videos\.video:\d+:videos\.management\.commands\.download\.Command\t",
                done.stdout,
                re.MULTILINE,
            )
        )
        == 2
    )
    assert sorted(done.stderr.splitlines()) == [
        f"broken-{number}: HTTP Error 500: Internal Server Error" for number in range(2)
    ]
    assert list(tmp_path.glob("reservable-demo-*")) == []


def test_it_serves_its_admin_until_it_is_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, DEMO, "--serve", "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=PROJECT,
        env=environment(tmp_path, SITE_FOLDER=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as site:
        assert site.stdout is not None
        try:
            told = next(line for line in site.stdout if line.startswith("The admin: "))
            address = told.split()[2]
            assert "Log in" in opened(address, site)
            assert list(tmp_path.glob("reservable-demo-*")) != []
            site.send_signal(signal.SIGINT)
            assert site.wait(20) == 130
        finally:
            site.kill()
    assert list(tmp_path.glob("reservable-demo-*")) == []


def test_a_port_in_use_is_told_before_anything_is_done(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run_example(DEMO, "--serve", "--port", port, temporary=tmp_path, SITE_FOLDER=str(tmp_path))
    assert done.returncode == 2
    assert done.stdout == ""
    assert port in done.stderr
    assert "--port" in done.stderr


def opened(address: str, site: subprocess.Popen[str]) -> str:
    """The page at the address, as soon as the site answers."""
    from tests.waiting import eventually

    def page() -> str | None:
        assert site.poll() is None
        try:
            with build_opener(ProxyHandler({})).open(address, timeout=20) as answer:
                return str(answer.read().decode())
        except ConnectionError:
            return None
        except OSError as error:
            if isinstance(getattr(error, "reason", None), ConnectionError):
                return None
            raise

    return eventually(page) or ""


def test_the_site_has_nothing_to_migrate_and_nothing_to_complain_of(tmp_path: Path) -> None:
    assert (
        run_example(
            "-W", "error", MANAGE, "migrate", "-v0", temporary=tmp_path, SITE_FOLDER=str(tmp_path)
        ).returncode
        == 0
    )
    for command in (
        ["makemigrations", "--check"],
        ["check", "--fail-level", "WARNING", "--database", "default"],
    ):
        done = run_example("-W", "error", MANAGE, *command, temporary=tmp_path, SITE_FOLDER=str(tmp_path))
        assert done.returncode == 0, done.stdout + done.stderr


A_GOOD_RUN = [
    Outcome("video-1", requests=1, content="video-1", reserved=False, shown=False),
    Outcome("broken-1", requests=1, content=None, reserved=True, shown=True),
]


def test_a_good_run_is_told_to_be_one() -> None:
    assert all(promises(A_GOOD_RUN, [0, 0]).values())


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (0, {"content": None}),
        (0, {"content": "something else"}),
        (0, {"requests": 2}),
        (0, {"requests": 0}),
        (0, {"reserved": True}),
        (0, {"shown": True}),
        (1, {"requests": 2}),
        (1, {"requests": 0}),
        (1, {"content": "broken-1"}),
        (1, {"reserved": False}),
        (1, {"shown": False}),
    ],
)
def test_a_broken_promise_is_told(place: int, change: dict[str, Any]) -> None:
    run = list(A_GOOD_RUN)
    run[place] = replace(run[place], **change)
    assert list(promises(run, [0, 0]).values()).count(False) == 1


def test_a_command_that_failed_is_told() -> None:
    assert list(promises(A_GOOD_RUN, [0, 1]).values()).count(False) == 1
