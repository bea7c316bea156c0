"""A web server for a folder, that counts what it is asked for, fails on one file and stops halfway in another."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import quote

CHUNK = 64 * 1024


@dataclass
class Served:
    """What became of one file."""

    requests: int = 0
    agents: tuple[str, ...] = ()
    sent: tuple[tuple[int, str], ...] = ()
    """Size and SHA-256 of each answer that was sent to its end."""


class FileServer:
    """Serves the files on a free port of this machine, from threads; `failing` and `halting` are among them.

    `failing` is always answered with 500. Of `halting` half is sent; then `halfway` is set, and the other half
    never comes: the connection stays open until `let_go`.
    """

    def __init__(self, files: Sequence[Path], failing: Path, halting: Path) -> None:
        self.files = list(files)
        self.failing, self.halting = failing, halting
        self.served = {file: Served() for file in files}
        self.halfway, self.let_go = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._http.daemon_threads = False  # closing waits for the last answer, so that it is counted
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def url(self, file: Path) -> str:
        name = quote(file.name, safe="", errors="surrogateescape")
        return f"http://127.0.0.1:{self._http.server_port}/{self.files.index(file)}/{name}"

    @property
    def answered(self) -> int:
        """Files that need no more work: sent to their end, failed, or halted."""
        with self._lock:
            done = sum(bool(served.sent) for served in self.served.values())
        return done + bool(self.served[self.failing].requests) + self.let_go.is_set()

    @property
    def requests(self) -> int:
        with self._lock:
            return sum(served.requests for served in self.served.values())

    def asked(self, file: Path, agent: str) -> None:
        with self._lock:
            served = self.served[file]
            served.requests += 1
            served.agents += (agent,)

    def sent(self, file: Path, size: int, sha256: str) -> None:
        with self._lock:
            self.served[file].sent += ((size, sha256),)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it, after the last answer."""
        self.let_go.set()
        self._http.shutdown()
        self._http.server_close()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, files: FileServer, *arguments: object) -> None:
        self.of = files
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        number = self.path.split("/")[1]
        if not number.isdigit() or int(number) >= len(self.of.files):
            return self.send_error(HTTPStatus.NOT_FOUND)
        file = self.of.files[int(number)]
        self.of.asked(file, self.headers.get("User-Agent", ""))
        if file == self.of.failing:
            return self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
        try:
            self._send(file)
        except ConnectionError:
            self.close_connection = True  # the client is gone; what it was not sent is not counted
        return None

    def _send(self, file: Path) -> None:
        with file.open("rb") as content:
            length = content.seek(0, 2)
            content.seek(0)
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(length))
            self.end_headers()
            left = length // 2 if file == self.of.halting else length
            digest = hashlib.sha256()
            while left and (chunk := content.read(min(CHUNK, left))):
                self.wfile.write(chunk)
                digest.update(chunk)
                left -= len(chunk)
        if file == self.of.halting:
            self.of.halfway.set()
            self.of.let_go.wait()
        elif not left:
            self.of.sent(file, length, digest.hexdigest())

    def log_message(self, *_: object) -> None:
        """Say nothing: the screen belongs to the progress bar."""
