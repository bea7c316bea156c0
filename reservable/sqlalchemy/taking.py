"""One call of a finding function: search, look again, hand over to the caller's session."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from sqlalchemy import inspect
from sqlalchemy.orm import Session, scoped_session

from reservable import durations, names
from reservable.backends.base import Backend
from reservable.backends.database import DatabaseBackend
from reservable.config import owner_label
from reservable.errors import BackendError, NotSupported
from reservable.handles import Reservation
from reservable.sqlalchemy import homes, reader
from reservable.sqlalchemy.batches import InBatches
from reservable.sqlalchemy.candidates import Candidates, as_executed
from reservable.sqlalchemy.mixin import holdings_of
from reservable.sqlalchemy.reading import Reading
from reservable.sqlalchemy.search import Beside, Found, Key, Purpose, give_back

log = logging.getLogger("reservable")

AnySession = Session | scoped_session[Any]


class Taken(NamedTuple):
    """A row that is reserved and in the caller's session."""

    key: Key
    instance: Any
    handle: Reservation


class Finding:
    """One call: the statement, the purpose, and the search that suits the store."""

    def __init__(self, session: AnySession, statement: Any, key: Any, duration: Any) -> None:
        if isinstance(session, scoped_session):
            session = session()
        if not isinstance(session, Session):
            raise NotSupported(f"give a SQLAlchemy Session, not {type(session).__name__}")
        self.purpose = Purpose(names.plain_name(key), owner_label(), durations.lifetime(duration))
        self.session = session
        self.candidates = Candidates(as_executed(session, statement))
        mapper = self.candidates.mapper
        self.candidates.identity = homes.located(self.candidates.identity, session)
        self.backend = homes.backend_of(mapper, session)
        engine = homes.engine_of(mapper, session)
        self.reading = Reading(session, mapper, engine)
        self.search: Beside | InBatches
        if (
            isinstance(self.backend, DatabaseBackend)
            and self.backend.connections.dialect is engine.dialect  # equal URLs may lead to different places
            and self.candidates.identity.in_sql
            and not self.candidates.alone
            and not self.reading.renames_schemas(self.candidates.statement)
        ):
            self.search = Beside(self.backend, self.candidates, self.purpose)
        else:
            self.search = InBatches(self.backend, self.candidates, self.purpose, self.reading)

    def take(self, limit: int) -> list[Taken]:
        """Up to `limit` rows, reserved and in the caller's session; none is left reserved by an error."""
        taken: list[Taken] = []
        try:
            while len(taken) < limit:
                found = self.search.reserve(limit - len(taken))
                if not found:
                    break
                taken += self._bring(found)
        except BaseException:
            _let_go(taken)
            raise
        return taken

    def each(self) -> Iterator[Any]:
        """Row after row; when the end is reached, one more look from the front for what has become free."""
        yielded: set[Key] = set()
        anything = True
        while anything:
            anything = False
            while taken := self.take(1):
                [(key, instance, handle)] = taken
                if key in yielded:
                    # Released, or over, and still a match. Only such rows need be kept out by the search:
                    # most are released when they match no longer, and a list of all would grow and grow.
                    self.search.skip(key)
                    handle.release()
                    continue
                anything = True
                yielded.add(key)
                yield instance
            self.search.restart()

    def _bring(self, found: list[Found]) -> list[Taken]:
        """The rows that still match, now that nobody else works on them; the others are given back."""
        brought: list[Taken] = []
        missing: dict[Key, Found] = {one.key: one for one in found}
        try:
            for one in found:
                self.candidates.identity.pk(
                    one.key
                )  # raises for a key too long for Python, though not for SQL
            statement = self.candidates.again(list(missing))
            for instance in self.reading(lambda connection: reader.load(self.session, connection, statement)):
                key = tuple(inspect(instance).key[1])
                if key in missing:
                    brought.append(self._hand_over(instance, missing.pop(key)))
            while missing:
                key, one = missing.popitem()
                self.search.skip(key)
                self.backend.release(one.grant.name, one.grant.token)
        except BaseException:
            _let_go(brought)
            give_back(self.backend, missing.values())
            raise
        return brought

    def _hand_over(self, instance: Any, one: Found) -> Taken:
        """Make the instance the holder of the grant."""
        if time.monotonic() >= one.deadline:
            give_back(self.backend, [one])
            raise BackendError(
                f"{one.grant.name} was reserved for {self.purpose.lifetime} and that was over before its row "
                "could be read: ask for a longer time, or look at what makes the database slow"
            )
        handle = handle_of(instance, self.backend, one.grant.name, self.purpose)
        handle.adopt(one.grant, one.deadline)
        return Taken(one.key, instance, handle)


def _let_go(taken: Iterable[Taken]) -> None:
    """Release what the caller will not be told of, because of an error that is under way."""
    for one in taken:
        try:
            one.handle.release()
        except BackendError as trouble:
            log.warning("the release of %s failed: %s", one.handle.name, trouble)


def handle_of(instance: Any, backend: Backend, name: str, purpose: Purpose) -> Reservation:
    """A handle that the instance keeps account of."""
    return Reservation(backend, name, purpose.lifetime, owner=purpose.owner, ledger=holdings_of(instance))
