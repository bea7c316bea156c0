"""The Django site at work: `python examples/django_demo.py` (or `make demo-django`).

In a temporary folder, an SQLite file is migrated and gets some videos, which a local server serves. The management command
`download` is run by four processes at once and then once more, as cron would a minute later. Two videos cannot be
downloaded (the server answers 500): these stay reserved. At the end every promise is checked against what the server
has counted, what is in the table and what the admin shows: exit code 1 if one is broken.

`--serve` keeps the site afterwards and serves its admin, until Ctrl-C.

The code to copy is in django_site/; this file is the stage.
"""

import argparse
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SITE = Path(__file__).parent / "django_site"
GOOD, BROKEN, WORKERS = 10, 2, 4
KEY = "videos.management.commands.download.Command"
PATIENCE = 120
"""Seconds that one command may take."""


class VideoServer(ThreadingHTTPServer):
    """Serves a text for each video, and counts who is asked for; the broken ones get a 500."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.requests: Counter[str] = Counter()
        self.counting = threading.Lock()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}"


class _Answer(BaseHTTPRequestHandler):
    server: VideoServer

    def do_GET(self) -> None:
        name = self.path.removeprefix("/")
        with self.server.counting:
            self.server.requests[name] += 1
        time.sleep(0.1)  # a download takes its time, so that the workers meet
        if name.startswith("broken"):
            self.send_error(500)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(name.encode())

    def log_message(self, *_: Any) -> None:
        pass


@dataclass(frozen=True)
class Outcome:
    """One video after the run: how often it was asked for, what is on disk, and whether it is still reserved."""

    name: str
    requests: int
    content: str | None
    reserved: bool
    shown: bool
    """Whether the admin lists it among the reservations."""

    @property
    def broken(self) -> bool:
        return self.name.startswith("broken")


def promises(found: Sequence[Outcome], exits: Sequence[int]) -> dict[str, bool]:
    """What was promised, and whether it was kept; `exits` are the exit codes of the commands."""
    good = [video for video in found if not video.broken]
    broken = [video for video in found if video.broken]
    return {
        "every command ended by itself, with 0": not any(exits),
        "every good video is on the disk": all(video.content == video.name for video in good),
        "and was asked for once, by one of the workers": all(video.requests == 1 for video in good),
        "it is not reserved any more": not any(video.reserved or video.shown for video in good),
        "a video that failed was asked for once, and not again by the next run": all(
            video.requests == 1 and video.content is None for video in broken
        ),
        "it stays reserved": all(video.reserved for video in broken),
        "and the admin shows that": all(video.shown for video in broken),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every promise was kept; 1: one was broken; 2: it could not run; 130: interrupted."""
    parser = argparse.ArgumentParser(
        description="Run a management command in parallel, and look into the admin."
    )
    parser.add_argument("--serve", action="store_true", help="serve the admin afterwards, until Ctrl-C")
    parser.add_argument(
        "--port", type=int, default=8000, help="for --serve (default: 8000; 0: any that is free)"
    )
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # by way of what clears up
    folder = Path(tempfile.mkdtemp(prefix="reservable-demo-"))
    try:
        if options.serve:
            _free_port(options.port)  # told now, not after the whole run
        return _perform(folder, port=options.port if options.serve else None)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"The example cannot run: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nInterrupted; everything is cleared away.", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _perform(folder: Path, *, port: int | None) -> int:
    os.environ |= {
        "SITE_FOLDER": str(folder),
        "SITE_SECRET_KEY": secrets.token_urlsafe(40),
        "DJANGO_SETTINGS_MODULE": "website.settings",
        "no_proxy": "127.0.0.1",
    }
    os.environ.pop("RESERVABLE_URL", None)
    sys.path.insert(0, str(SITE))  # as its manage.py has it
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    with _serving() as server:
        _add_videos(server)
        print(f"{GOOD + BROKEN} videos, and {WORKERS} times `manage.py download` at once:\n", flush=True)
        exits = [*_download(WORKERS), *_download(1)]
        found = _look(server)
    print("\n`manage.py reservable list`:\n", flush=True)
    call_command("reservable", "list")
    print()
    kept = promises(found, exits)
    for promise, was_kept in kept.items():
        print(f"  {'kept  ' if was_kept else 'BROKEN'}  {promise}")
    if not all(kept.values()):
        print("\nA promise was broken.")
        return 1
    print("\nEvery promise was kept.")
    if port is None:
        print("To see the reservations in the admin: make demo-django ARGS=--serve")
        return 0
    return _show(port)


@contextmanager
def _serving() -> Iterator[VideoServer]:
    with VideoServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _add_videos(server: VideoServer) -> None:
    from videos.models import Video

    names = [
        *(f"broken-{number}" for number in range(BROKEN)),
        *(f"video-{number}" for number in range(GOOD)),
    ]
    Video.objects.bulk_create([Video(title=name, url=server.url(name)) for name in names])


def _download(times: int) -> list[int]:
    """Run the command so many times at once; the exit codes."""
    command = [sys.executable, str(SITE / "manage.py"), "download"]
    running = [subprocess.Popen(command) for _ in range(times)]
    try:
        return [process.wait(PATIENCE) for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()


def _look(server: VideoServer) -> list[Outcome]:
    from videos.management.commands.download import Command
    from videos.models import Video

    page = _admin_page()
    return [
        Outcome(
            name=video.title,
            requests=server.requests[video.title],
            content=Path(video.path).read_text() if video.path else None,
            reserved=video.is_reserved(Command),
            shown=f'data-name="videos.video:{video.pk}:{KEY}"' in page,
        )
        for video in Video.objects.order_by("id")
    ]


def _admin_page() -> str:
    """What an administrator sees of the reservations."""
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    return str(client.get("/admin/reservable/reservation/").content.decode())


def _show(port: int) -> int:
    """Serve the admin until somebody has seen enough."""
    from django.contrib.auth.models import User

    password = secrets.token_urlsafe(6)
    admin = User.objects.get(username="admin")
    admin.set_password(password)
    admin.save()
    port = port or _free_port()
    print(
        f"\nThe admin: http://127.0.0.1:{port}/admin/reservable/reservation/  (user admin, password {password})"
    )
    print("Ctrl-C ends it and clears it away.", flush=True)
    command = [sys.executable, str(SITE / "manage.py"), "runserver", "--noreload", f"127.0.0.1:{port}"]
    # The log of requests would bury the line with the password.
    quiet = os.environ | {"SITE_REQUEST_LOG": "ERROR"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=quiet) as site:
        try:
            return site.wait() and 2
        finally:
            site.terminate()


def _free_port(wanted: int = 0) -> int:
    """The port, or any that is free for 0. Raises `OSError` for one that is in use."""
    try:
        with ThreadingHTTPServer(("127.0.0.1", wanted), BaseHTTPRequestHandler) as probe:
            return int(probe.server_port)
    except (OSError, OverflowError) as error:
        raise OSError(
            f"nothing can be served on port {wanted} ({error}): give another with --port"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
