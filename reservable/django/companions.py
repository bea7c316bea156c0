"""A second connection for each thread and database, for what must not be part of the caller's transaction.

It lives as Django's own do: made when first needed, checked at the beginning of a request and closed at its end
once it is older than CONN_MAX_AGE; and it is closed with Django's own, so that a test runner can drop its database.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress
from typing import Any

from django.core.signals import request_finished, request_started
from django.db import Error
from sqlalchemy.engine import Dialect

from reservable.backends.database.preparing import prepare
from reservable.django.dialects import apart_from

BUSY = 250
"""Milliseconds that a companion waits for SQLite's lock: as long as a neighbour may write, for if it is the caller's
own transaction that holds it, no wait would help."""


class _Thread(threading.local):
    def __init__(self) -> None:
        self.companions: dict[str, Any] = {}
        self.pid = os.getpid()


_here = _Thread()
_parents: list[Any] = []
"""Those of a parent process. Never closed by a forked child: both share a socket."""


def companion(connection: Any, dialect: Dialect) -> Any:
    """The second wrapper beside Django's own in this thread, connected. Raises Django's errors."""
    if _here.pid != os.getpid():
        _parents.append(_here.companions)
        _here.companions, _here.pid = {}, os.getpid()
    made = _here.companions.get(connection.alias)
    if made is None or _place(made) != _place(connection):  # a test runner has put its own database in place
        if made is not None:
            made.close()
        made = _here.companions[connection.alias] = apart_from(connection)
        _close_with(connection)
    if made.connection is None:
        if hasattr(made, "at_end"):
            made.at_end.detach()  # it keeps the connection before, which is closed
        made.ensure_connection()
        driver: Any = made.connection
        # A thread's end closes nothing by itself, and drivers complain of what is left open.
        made.at_end = weakref.finalize(made, _close, driver, os.getpid())
        made.at_end.atexit = False
        prepare(dialect, driver)
        if dialect.name == "sqlite":
            driver.execute(f"PRAGMA busy_timeout = {BUSY}")
    return made


def _close_with(connection: Any) -> None:
    """Have Django's own connection close its companion along. It sends no signal, so its method is taken over, once."""
    close = connection.close
    if hasattr(close, "of_both"):
        return

    def close_both() -> None:
        companion: Any = _here.companions.get(connection.alias)
        if companion is not None:
            with suppress(Error):
                companion.close()
        close()

    vars(close_both)["of_both"] = True
    connection.close = close_both


def close_old(**_: Any) -> None:
    """Close what this thread has and Django would close by now."""
    for made in _here.companions.values():
        made.close_if_unusable_or_obsolete()


def close_all() -> None:
    """Close what this thread has."""
    for made in _here.companions.values():
        with suppress(Error):
            made.close()


def _place(connection: Any) -> tuple[Any, ...]:
    settings = connection.settings_dict
    return settings["NAME"], settings["HOST"], settings["PORT"], settings["USER"]


def _close(driver: Any, pid: int) -> None:
    if pid == os.getpid():
        with suppress(Exception):  # closed already, or its server is gone
            driver.close()


request_started.connect(close_old)
request_finished.connect(close_old)
