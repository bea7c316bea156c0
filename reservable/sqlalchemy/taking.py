"""One call of a finding function over a session: search, look again, hand over to the caller's session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import inspect
from sqlalchemy.orm import Session, scoped_session

from reservable.backends.database import DatabaseBackend
from reservable.errors import NotSupported
from reservable.finding.batches import InBatches
from reservable.finding.search import Found, Key, purpose
from reservable.finding.taking import Taking
from reservable.handles import Handle
from reservable.sqlalchemy import homes, reader
from reservable.sqlalchemy.batches import KeysInOrder
from reservable.sqlalchemy.candidates import Candidates, as_executed
from reservable.sqlalchemy.colours import Colour
from reservable.sqlalchemy.expressions import but_ours
from reservable.sqlalchemy.greenlets import in_greenlet
from reservable.sqlalchemy.reading import Reading
from reservable.sqlalchemy.search import Beside

T = TypeVar("T")


class Finding(Taking):
    """One call: the statement, the purpose, and the search that suits the store."""

    def __init__(self, session: Session, statement: Any, key: Any, duration: Any, colour: Colour) -> None:
        self._colour = colour
        self.purpose = purpose(key, duration)
        self.session = session
        self.candidates = Candidates(as_executed(session, statement))
        mapper = self.candidates.mapper
        self.candidates.identity = homes.located(self.candidates.identity, session)
        self.home = colour.home(mapper, session)
        self.backend = self.home.backend
        engine = homes.engine_of(mapper, session)
        if engine.dialect.is_async and not in_greenlet():
            raise NotSupported(
                f"the database of this session is reached by {engine.driver}, which is awaited: give the AsyncSession to "
                "afirst_reserved, atake_reserved or aeach_reserved"
            )
        self.reading = Reading(session, mapper, engine)
        beside = self.backend if isinstance(self.backend, DatabaseBackend) else None
        if beside is not None and beside.connections.dialect is not engine.dialect:
            beside = None  # equal URLs may lead to different places
        if (
            beside is not None
            and self.candidates.identity.in_sql
            and not self.candidates.alone
            and not self.reading.renames_schemas(self.candidates.statement)
        ):
            self.search = Beside(beside, self.candidates, self.purpose)
        else:
            self.search = InBatches(
                self.backend, KeysInOrder(self.candidates, self.reading, beside), self.purpose
            )

    def see_through(self, work: Callable[[], T], undo: Callable[[T | None], object]) -> T:
        return self._colour.see_through(work, undo)

    def read_again(self, found: Sequence[Found]) -> Iterator[tuple[Key, Any]]:
        for one in found:
            self.candidates.identity.pk(one.key)  # raises for one too long for Python, though not for SQL
        statement = self.candidates.again([one.key for one in found])
        # With the execution, where it reaches lambdas, criteria of loaders and what listeners add; most have no use for it.
        ours = but_ours(self.candidates.identity, self.purpose.key)
        values = {ours: [one.grant.fence for one in found]}
        # Read to the end though the call may be cancelled, and only then moved, in the caller's own time.
        read = self._colour.see_through(
            lambda: self.reading(lambda connection: reader.read(self.session, connection, statement, values)),
            lambda _: None,
        )
        for instance in read.moved_to(self.session):
            yield tuple(inspect(instance).key[1]), instance

    def handle(self, instance: Any, name: str) -> Handle:
        return self.home.handle(instance, name, self.purpose)


def session_of(session: Any) -> Session:
    """The session itself; `NotSupported` for what is none."""
    if isinstance(session, scoped_session):
        session = session()
    if not isinstance(session, Session):
        raise NotSupported(f"give a SQLAlchemy Session, not {type(session).__name__}")
    return session


def awaited_session_of(session: Any) -> Session:
    """The session that an `AsyncSession`, or a scope of them, awaits; `NotSupported` for what is none."""
    given = session
    if not hasattr(session, "sync_session") and callable(session):
        session = session()
    awaited = getattr(session, "sync_session", None)
    if not isinstance(awaited, Session):
        raise NotSupported(f"give a SQLAlchemy AsyncSession, not {type(given).__name__}")
    return awaited
