"""Read through a connection of our own, on the caller's database, and try again where that can help."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Mapper, Session

from reservable.backends.database.backend import DatabaseBackend, is_private_memory
from reservable.backends.database.execution import explained
from reservable.plans import Pause, run
from reservable.retrying import asking
from reservable.sqlalchemy import homes

T = TypeVar("T")


class Reading:
    """Committed rows of the database that a session writes a mapper's rows to."""

    def __init__(self, session: Session, mapper: Mapper[Any], engine: Engine) -> None:
        self._session = session
        self._mapper = mapper
        # A database in memory has no second connection: there the caller's own is all there is.
        self._own = None if is_private_memory(engine) else homes.reader_of(engine)

    def __call__(self, work: Callable[[Connection], T], *, backend: DatabaseBackend | None = None) -> T:
        """What the work returns; repeated after a deadlock or a broken connection. Raises `BackendError`."""

        def once() -> T:
            if self._own is None:
                return work(self._session.connection(bind_arguments={"mapper": self._mapper}))
            try:
                with self._own.engine.connect() as connection:
                    return work(connection)
            except SQLAlchemyError as error:
                raise explained(error, self._own.dialect, self._own.url) from error

        def perform(step: Any) -> Any:
            if isinstance(step, Pause):
                return time.sleep(step.seconds)
            return once() if backend is None else backend.attempt(once)

        answer, _ = run(asking(once), perform)
        return answer  # type: ignore[no-any-return]
