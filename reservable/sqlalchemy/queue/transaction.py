"""A worker's session, as the transaction that a row is completed in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, Engine, Executable, inspect, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from reservable.errors import NotSupported
from reservable.leasing.transaction import OLD, Caller
from reservable.sqlalchemy import homes
from reservable.sqlalchemy.queue.queues import MappedQueue

_OLD_SNAPSHOT = "40001"
"""PostgreSQL's word for a change to a row that was changed after the transaction began."""


class SessionCaller(Caller):
    """Raises `NotSupported` for a session that could not keep the promise."""

    def __init__(self, queue: MappedQueue, engine: Engine, session: Session) -> None:
        self._queue = queue
        self._session = session
        self._bind: dict[str, Any] = {"bind_arguments": {"mapper": queue.mapper}}
        own = homes.engine_of(queue.mapper, session)
        if own is not engine and _place(own.url) != _place(engine.url):
            raise NotSupported(
                "this session writes to another database than the one that the row was claimed in: give one of that"
            )
        connection = session.connection(**self._bind)
        level = connection.get_execution_options().get("isolation_level")
        level = level or getattr(own.dialect, "_on_connect_isolation_level", None)
        if isinstance(level, str) and level.upper() == "AUTOCOMMIT":
            raise NotSupported(
                "this session commits every statement by itself (AUTOCOMMIT), so that nothing could be rolled back: "
                "give one with transactions"
            )

    @contextmanager
    def opened(self) -> Iterator[None]:
        try:
            yield
            self._session.commit()
        except BaseException:
            self._session.rollback()
            raise

    def changed(self, statement: Executable) -> int:
        try:
            return self._session.execute(statement, **self._bind).rowcount  # type: ignore[attr-defined,no-any-return]
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", getattr(error.orig, "pgcode", None)) == _OLD_SNAPSHOT:
                raise NotSupported(OLD) from error
            raise

    def row(self, fence: Any) -> Any:
        mine = select(self._queue.entity).where(fence).execution_options(populate_existing=True)
        return self._session.scalars(mine, **self._bind).unique().one()

    def keeps(self, row: Any) -> bool:
        self._session.flush()
        return not inspect(row).deleted


def _place(url: URL) -> tuple[Any, ...]:
    return url.get_backend_name(), url.host, url.port, url.database
