"""Close asyncio drivers' connections whose event loop cannot do it any more, so that nobody complains of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

from reservable.backends import loops


def bury(connection: Any, driver: str) -> None:
    """Close the driver's own connection, waiting for nobody; `driver` is SQLAlchemy's name for it."""
    with suppress(RuntimeError):  # "Event loop is closed"
        _BURIALS[driver](connection)


def _aiosqlite(connection: Any) -> None:
    # It answers the current loop if there is one, and that may be closed by then. A thread of our own has none.
    stopping = Thread(target=connection.stop)
    stopping.start()
    stopping.join()


def _asyncpg(connection: Any) -> None:
    connection._termination_listeners.clear()  # it would have the loop call them
    with loops.buried(connection._transport):
        connection.terminate()


def _asyncmy(connection: Any) -> None:
    transport = getattr(connection, "_transport", None)
    if transport is not None:
        connection._transport = None
        with loops.buried(transport):
            connection.close()
    else:  # older versions have asyncio's streams
        loops.bury(connection)


def _psycopg(connection: Any) -> None:
    connection.pgconn.finish()


_BURIALS: dict[str, Callable[[Any], None]] = {
    "aiosqlite": _aiosqlite,
    "asyncpg": _asyncpg,
    "psycopg": _psycopg,
    "aiomysql": loops.bury,
    "asyncmy": _asyncmy,
}
