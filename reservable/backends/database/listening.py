"""How a connection of each driver of PostgreSQL listens to one channel, and hears of it.

Messages come in whenever the connection reads: while it waits for one, and beside the answer to a statement. An ear
remembers both until it is told to forget.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sqlalchemy.util import await_only

from reservable.backends.database.lending import Lender

_PASSING = ("08", "53", "57")
"""Classes of SQLSTATE that say nothing about LISTEN: connections, resources, an operator's intervention."""


class Refused(Exception):
    """The server, or what stands before it, does not let us listen."""


class Ear:
    """An ear on a connection as SQLAlchemy has it, which is `driver`; `connection` is the driver's own."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.connection = getattr(driver, "driver_connection", driver)

    def listen(self, channel: str) -> None:
        """Be told of the channel from now on."""
        cursor = self.driver.cursor()
        try:
            cursor.execute(f'LISTEN "{channel}"')
        finally:
            cursor.close()

    def is_pooled(self) -> bool:
        """Whether a pooler is in between: then another process answers than the one that said hello."""
        cursor = self.driver.cursor()
        try:
            cursor.execute("SELECT pg_backend_pid()")
            return bool(cursor.fetchone()[0] != self._greeter())
        finally:
            cursor.close()

    def _greeter(self) -> int:
        return int(self.connection.info.backend_pid)

    @property
    def has_heard(self) -> bool:
        """Whether something that came in was told since `forget`."""
        raise NotImplementedError

    def forget(self) -> None:
        """Of what was told so far, hear no more."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection, waiting for nobody, once or more."""
        self.connection.close()


class LibpqEar(Ear):
    """On a connection of libpq's: what came in is collected when its socket has something to read."""

    def collect(self) -> bool:
        """Read what has come in; whether something was told since `forget`."""
        raise NotImplementedError

    def wire(self) -> socket.socket:
        """The connection's socket once more, to be closed by whoever asked."""
        return socket.fromfd(self.connection.fileno(), socket.AF_INET, socket.SOCK_STREAM)

    def hang_up(self) -> None:
        """Break the connection under whoever reads it, whose statement or waiting then fails at once."""
        with suppress(Exception), self.wire() as wire:
            wire.shutdown(socket.SHUT_RDWR)

    def hear(self, seconds: float) -> None:
        """Return when something was told since `forget`, or the connection broke, or after so many seconds."""
        with selectors.DefaultSelector() as selector:  # for select() cannot wait for large numbers of files
            selector.register(self.connection.fileno(), selectors.EVENT_READ)
            if not self.collect() and selector.select(seconds):
                self.collect()


class Psycopg2Ear(LibpqEar):
    """Psycopg 2, which keeps a list of what came in."""

    @property
    def has_heard(self) -> bool:
        return bool(self.connection.notifies)

    def forget(self) -> None:
        self.connection.notifies.clear()

    def collect(self) -> bool:
        self.connection.poll()
        return self.has_heard


class PsycopgEar(LibpqEar):
    """Psycopg 3, which calls a handler for what comes in beside the answer to a statement."""

    def __init__(self, driver: Any) -> None:
        super().__init__(driver)
        self._told = False
        self.connection.add_notify_handler(self._hear)

    def _hear(self, _: Any) -> None:
        self._told = True

    @property
    def has_heard(self) -> bool:
        return self._told

    def forget(self) -> None:
        self._told = False

    def collect(self) -> bool:
        self.connection.pgconn.consume_input()
        while self.connection.pgconn.notifies():
            self._told = True
        return self._told


class AsyncPsycopgEar(PsycopgEar):
    """Psycopg 3 in the loop that runs."""

    async def heard(self) -> None:
        """Return when something was told since `forget`; a connection that breaks is an error of the driver's, or ours."""
        if self.collect():
            return
        loop, number = asyncio.get_running_loop(), self.connection.fileno()
        readable = asyncio.Event()
        loop.add_reader(number, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(number)
        self.collect()

    def close(self) -> None:
        self.connection.pgconn.finish()


class AsyncpgEar(Ear):
    """asyncpg, which reads on its own."""

    def __init__(self, driver: Any) -> None:
        super().__init__(driver)
        self._told = asyncio.Event()
        self.connection.add_termination_listener(self._hear)

    def _hear(self, *_: Any) -> None:
        self._told.set()

    def _greeter(self) -> int:
        return int(self.connection.get_server_pid())

    def listen(self, channel: str) -> None:
        await_only(self.connection.add_listener(channel, self._hear))

    @property
    def has_heard(self) -> bool:
        return self._told.is_set()

    def forget(self) -> None:
        self._told.clear()

    async def heard(self) -> None:
        """As `AsyncPsycopgEar.heard`."""
        await self._told.wait()
        if self.connection.is_closed():
            raise ConnectionError("the server has closed the connection")

    def hang_up(self) -> None:
        """As `LibpqEar.hang_up`."""
        self.close()

    def close(self) -> None:
        self.connection.terminate()  # its close() waits for the server's goodbye


def ears(is_async: bool) -> dict[str, Callable[[Any], Any]]:
    """The ears for blocking code or for asyncio, by SQLAlchemy's names of their drivers."""
    if is_async:
        return {"psycopg": AsyncPsycopgEar, "asyncpg": AsyncpgEar}
    return {"psycopg": PsycopgEar, "psycopg2": Psycopg2Ear}


def listening(connections: Lender, channel: str) -> Any:
    """An ear on a connection of its own that has begun to listen; `Refused`, or the driver's errors."""
    dialect = connections.dialect
    ear = ears(dialect.is_async)[dialect.driver](connections.apart())
    try:
        if ear.is_pooled():
            raise Refused("a pooler gives every transaction another connection, and none of them the news")
        try:
            ear.listen(channel)
        except Exception as error:
            state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
            if state is None or state.startswith(_PASSING):
                raise
            raise Refused(str(error)) from error
    except BaseException:
        ear.close()
        raise
    return ear
