"""The stores that are measured: private servers as in the tests, or those whose URLs the environment gives."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.servers import Server, start_mariadb, start_postgresql
from tests.stores import STORES, Stores

DISK = {
    "postgresql": ("-c", "fsync=on", "-c", "full_page_writes=on"),
    "mariadb": ("--innodb-flush-log-at-trx-commit=1",),
}
"""With these a commit waits for the disk, as the servers do by default."""

COUNTING = ("-c", "shared_preload_libraries=pg_stat_statements", "-c", "pg_stat_statements.track=none")
"""Lets a database ask for the counting of its statements; all others are measured without."""


@contextmanager
def servers(*, disk: bool) -> Iterator[Stores]:
    """The servers of one run, each started when first asked for, gone at the end.

    The private ones do not wait for the disk unless `disk` says so: the share of the client is then largest.
    """
    stores = _Private(disk=disk)
    try:
        yield stores
    finally:
        stores.close()


class _Private(Stores):
    """`Stores` whose servers have options of our own."""

    def __init__(self, *, disk: bool) -> None:
        super().__init__()
        self._disk = DISK if disk else {}
        self._started: dict[str, Server] = {}
        self._exit = ExitStack()

    def url(self, kind: str) -> str:
        if STORES[kind].given is None and kind in ("postgresql", "mariadb"):
            if kind not in self._started:
                options = self._disk.get(kind, ())
                server: Server = (
                    start_postgresql(*COUNTING, *options) if kind == "postgresql" else start_mariadb(*options)
                )
                self._started[kind] = self._exit.enter_context(server)
            return self._started[kind].url
        return super().url(kind)

    def close(self) -> None:
        self._exit.close()
        super().close()


@contextmanager
def fresh(stores: Stores, kind: str) -> Iterator[str]:
    """The URL of a new and empty store; `sqlite` is a file in WAL mode, `sqlite-journal` one in the default mode."""
    if not kind.startswith("sqlite"):
        with stores.fresh(kind) as url:
            yield url
        return
    with tempfile.TemporaryDirectory(prefix="reservable-bench-", dir=os.environ.get("TMPDIR")) as folder:
        yield f"sqlite:///{Path(folder) / ('wal.sqlite' if kind == 'sqlite' else 'journal.sqlite')}"
