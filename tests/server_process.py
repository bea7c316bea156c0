"""A server process that belongs to the tests: it can be frozen and killed, and it never outlives them."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def free_port() -> int:
    """Return a port of the loopback address that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def unprivileged(*preferred: str) -> str | None:
    """Return the account to run a server as; None when we are not root and run it as ourselves.

    PostgreSQL refuses to run as root, and MariaDB wants to be told that it may.
    """
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in (*preferred, "nobody") if name in known)


def family(parent: int) -> list[int]:
    """Return the process and everything it started, parents first (only the process itself without /proc)."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended while we were looking
            # After the command, which may hold blanks and brackets of its own: state, then the parent.
            children.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(
                int(stat.parent.name)
            )
    found = [parent]
    for pid in found:  # grows while we walk it
        found += children.get(pid, [])
    return found


def signal_family(parent: int, number: signal.Signals) -> None:
    """Send the signal to the process and to everything it started."""
    for pid in family(parent):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def run_as(command: Sequence[str], user: str | None, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end as that account, away from our own environment."""
    return subprocess.run(
        command,
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **_identity(user),
    )


class ServerProcess:
    """A running server with a folder of its own, whose output goes to `log` in that folder.

    A watchdog waits for the end of this test run, however it comes (kill -9 too), and then ends the server
    and removes the folder.
    """

    def __init__(self, command: Sequence[str], folder: Path, user: str | None) -> None:
        with (folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                command,
                cwd=folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests, which then end the server in their own order
                **_identity(user),
            )
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", __file__, str(self._server.pid), str(folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        """Whether the server has not ended yet (a frozen one has not)."""
        return self._server.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send the signal to the server and to the processes that serve its connections."""
        if self.alive:
            signal_family(self._server.pid, number)

    def terminate(self, how: signal.Signals, within: float = 20.0) -> None:
        """Ask the server to end in its own order, and make it end when it does not."""
        if self.alive:
            self.send(signal.SIGCONT)
            self._server.send_signal(how)
            try:
                self._server.wait(within)
            except subprocess.TimeoutExpired:
                self.send(signal.SIGKILL)
        self._forget()

    def kill(self) -> None:
        """End the server and its children at once, as a crash of the machine would."""
        self.send(signal.SIGKILL)
        self._forget()

    def _forget(self) -> None:
        self._server.wait()
        self._watchdog.kill()
        self._watchdog.communicate()


def _environment() -> dict[str, str]:
    # Nothing of the developer's own may reach the server: PGDATA, PGPORT, MYSQL_HOME, a locale, a time zone.
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _identity(user: str | None) -> dict[str, Any]:
    if user is None:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _watch(server: int, folder: str) -> None:
    """Wait until the tests are gone (their end of the pipe closes), then end the server and tidy up."""
    sys.stdin.buffer.read()
    signal_family(server, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _watch(int(sys.argv[1]), sys.argv[2])
