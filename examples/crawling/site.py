"""A web site on this machine that notes every visit; one page always fails, and one stops halfway the first time."""

from __future__ import annotations

import hashlib
import threading
import time
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self

HOME, BROKEN, SLOW, LATER = "/", "/broken", "/slow", "/later"


class Visit(NamedTuple):
    agent: str
    at: float
    """By `time.monotonic()`."""
    whole: bool
    """Whether the page was sent to its end."""


def pages(sections: int, each: int) -> dict[str, bytes]:
    """The pages by their paths; the same page is linked to from many others."""
    inside = {f"/{n}/": [f"/{n}/{m}" for m in range(1, each + 1)] for n in range(1, sections + 1)}
    links = {HOME: [*inside, BROKEN, SLOW, LATER], BROKEN: [], SLOW: [HOME], LATER: [HOME]}
    for section, articles in inside.items():
        links[section] = [HOME, SLOW, LATER, *inside, *articles]
        links |= {article: [HOME, section, *articles] for article in articles}
    return {path: _page(path, targets) for path, targets in links.items()}


def _page(path: str, links: list[str]) -> bytes:
    anchors = "\n".join(f'<a href="{link}">{link}</a>' for link in links)
    return f"<!doctype html><title>Page {path}</title>\n{anchors}\n".encode()


class Site:
    """Serves the pages from threads, on a free port.

    `BROKEN` is always answered with 500. Of `SLOW` half is sent when it is asked for first; then `halfway` is set, and
    the other half never comes: the connection stays open until `let_go`.
    """

    def __init__(self, sections: int = 5, each: int = 6) -> None:
        self.pages = pages(sections, each)
        self.visits: dict[str, list[Visit]] = {path: [] for path in self.pages}
        self.halfway, self.let_go = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._http.daemon_threads = False  # closing waits for the last answer, so that it is noted
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._http.server_port}{path}"

    def sha256(self, path: str) -> str:
        return hashlib.sha256(self.pages[path]).hexdigest()

    def visited(self, path: str, agent: str) -> bool:
        """Note a visit; whether the page is to be sent whole."""
        with self._lock:
            whole = path != BROKEN and not (path == SLOW and not self.visits[path])
            self.visits[path].append(Visit(agent, time.monotonic(), whole))
            return whole

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go.set()
        self._http.shutdown()
        self._http.server_close()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, site: Site, *arguments: object) -> None:
        self.site = site
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        content = self.site.pages.get(self.path)
        if content is None:
            return self.send_error(HTTPStatus.NOT_FOUND)
        whole = self.site.visited(self.path, self.headers.get("User-Agent", ""))
        if self.path == BROKEN:
            return self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content if whole else content[: len(content) // 2])
        if not whole:
            self.wfile.flush()
            self.site.halfway.set()
            self.site.let_go.wait()
        return None

    def log_message(self, *_: object) -> None:
        """Say nothing: the screen belongs to the report."""
