"""The crawler: take the next page, fetch it, note what came, queue what it links to. The file to copy.

Any number of these may run at once, on any number of machines: no two of them work on the same page. A page that fails
is tried again later, and the page of a worker that dies is taken over when its lease is over.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable
from html.parser import HTMLParser
from urllib.parse import urljoin
from urllib.request import Request, urlopen

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from reservable import Lease

from .model import Page

Sessions = Callable[[], Session]


def crawl(sessions: Sessions, stop: threading.Event, worker: str) -> None:
    """Crawl until it is to stop; an error of a page is logged and stored, and does not end the loop."""
    for lease in Page.work(sessions, worker=worker, stop=stop, idle="200ms"):
        with lease:
            content = fetch(lease.row.url)  # takes its time: no transaction is open, and no lock is held
            store(lease, sessions, content)


def fetch(url: str) -> bytes:
    """The whole page. Raises `OSError`, for an answer that is an error, too."""
    with urlopen(Request(url, headers={"User-Agent": f"crawler/{os.getpid()}"}), timeout=60) as response:
        content: bytes = response.read()
    return content


def store(lease: Lease, sessions: Sessions, content: bytes) -> None:
    """What came, the pages it links to, and that it is done: in one commit, and only while it is ours."""
    seen = Reader(lease.row.url, content)
    while True:
        try:
            with sessions() as session, lease.transaction(session) as page:
                page.title, page.sha256 = seen.title, hashlib.sha256(content).hexdigest()
                queue(session, seen.links)
            return
        except IntegrityError:
            continue  # another worker has queued one of the links since we looked: look again


def queue(session: Session, urls: Iterable[str]) -> None:
    """Add the pages that are not there yet. In one order everywhere, so that no two workers wait for each other."""
    known = {*session.scalars(select(Page.url).where(Page.url.in_(urls)))}
    session.add_all(Page(url=url) for url in sorted({*urls} - known))


class Reader(HTMLParser):
    """The title of a page, and the addresses that it links to."""

    def __init__(self, url: str, content: bytes) -> None:
        super().__init__()
        self.title = ""
        self.links: set[str] = set()
        self._url, self._in_title = url, False
        self.feed(content.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_title = tag == "title"
        if tag == "a" and (target := dict(attrs).get("href")):
            self.links.add(urljoin(self._url, target))

    def handle_endtag(self, tag: str) -> None:
        self._in_title = self._in_title and tag != "title"

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
