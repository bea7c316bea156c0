"""Private Redis, PostgreSQL and MariaDB servers, each on a free port and in a temporary folder of its own.

    with start_redis() as server:
        ...server.url...
        server.kill()
        server.restart()        # same port, same data

Their settings are the servers' own defaults wherever these can change what a client sees (isolation, lock
waits, SQL mode); only the waiting for the disk is left out. Data survives a killed server, not a power cut.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

import psycopg
import pymysql

from tests.server_process import ServerProcess, free_port, run_as, unprivileged


class ServerMissing(Exception):
    """The program of a server is not on this machine; the text says which."""


class ServerBroken(Exception):
    """A server is on this machine but did not start; the text ends with its own last words."""


def program(name: str, *folders: str) -> str:
    """Return the path of a server's program, looking where distributions hide it from PATH."""
    places = [str(path) for pattern in folders for path in sorted(Path("/").glob(pattern), reverse=True)]
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *places]))
    if found is None:
        raise ServerMissing(f"program not found: {name}")
    return found


class Server(ABC):
    """A private server; it is running once it is made, and gone with all its data after `close`."""

    accounts: ClassVar[tuple[str, ...]]
    farewell: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, *options: str) -> None:
        self._options = options
        self._user = unprivileged(*self.accounts)
        self._process: ServerProcess | None = None
        self._find()
        self.folder = Path(tempfile.mkdtemp(prefix="reservable-"))
        try:
            if self._user is not None:
                shutil.chown(self.folder, self._user)
            self._prepare()
            self.port = free_port()
            try:
                self.restart()
            except ServerBroken:  # most likely somebody took the port between the look and the start
                self.port = free_port()
                self.restart()
        except BaseException:
            self.close()
            raise

    @property
    @abstractmethod
    def url(self) -> str:
        """Where the server is, as the library is told it."""

    @abstractmethod
    def _find(self) -> None:
        """Find the programs, or raise `ServerMissing`."""

    def _prepare(self) -> None:  # noqa: B027 - Redis has nothing to prepare
        """Make the data folder before the first start, where the server does not do so itself."""

    @abstractmethod
    def _command(self) -> list[str]:
        """The command that runs the server in the foreground."""

    @abstractmethod
    def _knock(self) -> None:
        """Raise unless the server answers."""

    def stop(self) -> None:
        """End the server in its own order."""
        if self._process is not None:
            self._process.terminate(self.farewell)
            self._process = None

    def kill(self) -> None:
        """Kill the server and its children (SIGKILL): nothing is said goodbye to."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def sigstop(self) -> None:
        """Freeze the server with its connections: they stay open and nobody answers."""
        if self._process is not None:
            self._process.send(signal.SIGSTOP)

    def sigcont(self) -> None:
        """Let a frozen server go on."""
        if self._process is not None:
            self._process.send(signal.SIGCONT)

    def restart(self, within: float = 30.0) -> None:
        """Start the server again with the same data on the same port, stopping it first if it runs."""
        self.stop()
        self._process = ServerProcess([*self._command(), *self._options], self.folder, self._user)
        until = time.monotonic() + within
        while True:
            try:
                self._knock()
            except (OSError, psycopg.Error, pymysql.Error) as error:
                if self._process.alive and time.monotonic() < until:
                    time.sleep(0.02)
                    continue
                self.kill()
                last_words = (self.folder / "log").read_text(errors="replace")[-1500:]
                raise ServerBroken(f"{type(self).__name__} did not start: {last_words}") from error
            return

    def close(self) -> None:
        """End the server and remove its data."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, command: Sequence[str]) -> None:
        done = run_as(command, self._user, self.folder)
        if done.returncode != 0:
            raise ServerBroken(f"{command[0]} failed: {(done.stdout + done.stderr)[-1500:]}")


class Redis(Server):
    """A Redis server with 1,024 databases."""

    accounts = ("redis",)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def _find(self) -> None:
        self._redis = program("redis-server")

    def _command(self) -> list[str]:
        settings = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self.folder,
            "databases": 1024,
            "save": "",
            "appendonly": "yes",  # every write is with the system before its reply: a kill loses nothing
            "appendfsync": "no",
            "auto-aof-rewrite-percentage": 0,
        }
        return [self._redis, *(text for key, value in settings.items() for text in (f"--{key}", str(value)))]

    def _knock(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            if not connection.recv(64).startswith(b"+PONG"):  # still reading its data
                raise ConnectionError("not ready yet")


class PostgreSQL(Server):
    """A PostgreSQL server that trusts everybody on the loopback address; the superuser is `postgres`."""

    accounts = ("postgres",)
    farewell = signal.SIGINT  # the "fast" shutdown: does not wait for clients to leave

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/postgres"

    def _find(self) -> None:
        folders = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "opt/homebrew/opt/postgresql*/bin")
        self._postgres = program("postgres", *folders)
        self._initdb = program("initdb", *folders)

    def _prepare(self) -> None:
        how = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
        self._run([self._initdb, "--pgdata=data", *how])

    def _command(self) -> list[str]:
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": 200,
            "fsync": "off",
            "full_page_writes": "off",
        }
        options = [text for key, value in settings.items() for text in ("-c", f"{key}={value}")]
        return [self._postgres, "-D", "data", *options]

    def _knock(self) -> None:
        with psycopg.connect(host="127.0.0.1", port=self.port, user="postgres", connect_timeout=2):
            pass


class MariaDB(Server):
    """A MariaDB server whose `root` has no password.

    Its default collation ignores case and trailing spaces, as on most people's servers: names must not care.
    """

    accounts = ("mysql",)

    @property
    def url(self) -> str:
        return f"mariadb+pymysql://root@127.0.0.1:{self.port}/test?charset=utf8mb4"

    def _find(self) -> None:
        self._mariadbd = program("mariadbd", "usr/sbin", "usr/local/sbin", "usr/libexec")
        self._install = program("mariadb-install-db")

    def _prepare(self) -> None:
        how = [
            "--auth-root-authentication-method=normal",
            "--skip-name-resolve",
            "--innodb-log-file-size=16M",
            f"--tmpdir={self.folder}",  # two at once in one folder take each other's temporary tables
        ]
        self._run([self._install, "--no-defaults", f"--datadir={self.folder}/data", *how])

    def _command(self) -> list[str]:
        settings = {
            "datadir": self.folder / "data",
            "port": self.port,
            "bind-address": "127.0.0.1",
            "socket": "socket",  # beside the data, by a short name: the path of a socket must not be long
            "pid-file": "pid",
            "tmpdir": self.folder,
            "max-connections": 200,
            "character-set-server": "utf8mb4",
            "collation-server": "utf8mb4_general_ci",
            "innodb-log-file-size": "16M",
            "innodb-flush-log-at-trx-commit": 2,  # with the system at every commit, on the disk later
            "innodb-buffer-pool-size": "64M",
        }
        options = [f"--{key}={value}" for key, value in settings.items()]
        return [self._mariadbd, "--no-defaults", "--skip-name-resolve", *options]

    def _knock(self) -> None:
        pymysql.connect(host="127.0.0.1", port=self.port, user="root", connect_timeout=2).close()


def start_redis(*options: str) -> Redis:
    """Start a Redis of your own, to be stopped, frozen and killed at will; a context manager."""
    return Redis(*options)


def start_postgresql(*options: str) -> PostgreSQL:
    """Start a PostgreSQL of your own; `options` go to its command line (`"-c", "lock_timeout=1s"`)."""
    return PostgreSQL(*options)


def start_mariadb(*options: str) -> MariaDB:
    """Start a MariaDB of your own; `options` go to its command line (`"--innodb-lock-wait-timeout=1"`)."""
    return MariaDB(*options)
