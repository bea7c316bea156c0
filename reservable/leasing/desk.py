"""Where the worker's verbs are done: what is asked of one queue in one database."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, TypeVar

from sqlalchemy import Column, ColumnElement, Connection, Executable, Select, Update, tuple_
from sqlalchemy.engine import Dialect

from reservable.backends.database.execution import TextStatement
from reservable.backends.database.repeating import Told, steadily_told
from reservable.errors import BackendError
from reservable.leasing import statements
from reservable.leasing.asking import Asking, storable
from reservable.leasing.columns import microseconds, span
from reservable.leasing.parameters import (
    DELAY,
    Held,
    Kept,
    Values,
    column_values,
    held_values,
    is_sql,
    once,
)
from reservable.leasing.queues import Key, Queue
from reservable.queue.moves import Move
from reservable.retrying import Contended

T = TypeVar("T")

_LOCKED = (
    "another transaction has written a row that is leased here, or locked it, and not ended yet: nothing can be written "
    "to it until it is committed or rolled back (is it a session of this worker itself?)"
)


class RowName(str):
    """What a row is called by whoever keeps its lease alive; `pk` is its primary key."""

    __slots__ = ("pk",)
    pk: Key

    @classmethod
    def of(cls, queue: Queue, pk: Key) -> RowName:
        name = cls(queue.name(queue.read_key(pk)))
        name.pk = pk
        return name


class Desk(Asking):
    """One queue in one database.

    It is also what the service that keeps leases alive takes for a backend.
    """

    def __init__(self, queue: Queue, dialect: Dialect) -> None:
        super().__init__(dialect)
        self.queue = queue
        self._texts: Kept = {}

    # What an ORM has to do with it

    @abstractmethod
    def load(self, connection: Connection, held: Sequence[Held]) -> list[Any]:
        """The rows of these leases as objects that belong to nobody, in any order; those that are theirs still."""

    @abstractmethod
    def show(self, row: Any, values: Mapping[str, Any]) -> None:
        """Have the object show what was written, as far as that is known without asking."""

    @abstractmethod
    def transaction(self, lease: Any, session: Any) -> AbstractContextManager[Any]:
        """The lease's row, locked, in a transaction of the caller's; its end completes the row."""

    @abstractmethod
    def spawned(self, work: Callable[..., T], *arguments: Any) -> Coroutine[Any, Any, T]:
        """What blocking code returns that asks this desk, for asyncio."""

    @property
    def can_beat(self) -> bool:
        """Whether there is a connection for heartbeats, beside the caller's."""
        return not self.in_memory

    def must_be_blocking(self) -> None:
        """Raise the ORM's error where it refuses blocking code, before any of it is run."""

    # What is asked

    def change(
        self,
        held: Sequence[Held],
        statement: Executable,
        values: Values | None = None,
        *,
        patient: bool = True,
        repeatable: bool = True,
    ) -> Told[int]:
        """How many rows of these leases a statement has changed that is fenced.

        Rows that somebody else's transaction has locked are waited for, if it is `patient`, but not without end.
        """

        def work(connection: Connection) -> int:
            changed = connection.execute(statement, values).rowcount
            if patient:
                self._must_be_all(changed, held, lambda looking: connection.execute(looking).all())
            return changed

        return self.ask(work, repeatable=repeatable)

    def _must_be_all(
        self, changed: int, held: Sequence[Held], look: Callable[[Select[Any]], Sequence[Any]]
    ) -> None:
        """Have it asked again when rows that are their workers' still were not changed: somebody has locked them."""
        if self.returns and changed < len(held) and look(self._still(held).limit(1)):
            raise Contended(BackendError(_LOCKED))

    def move(
        self,
        move: Move,
        held: Sequence[Held],
        delay: timedelta = timedelta(),
        columns: Mapping[Column[Any], Any] | None = None,
        *,
        patient: bool = True,
    ) -> Told[int]:
        """Move the rows of those of these leases that are still theirs, and set columns along; how many."""
        columns = columns or {}

        def build() -> Update:
            return statements.moved(self.queue, move, delay, values=columns).where(self.fence(held))

        if any(map(is_sql, columns.values())):
            return self.change(held, build(), patient=patient)
        values = held_values(held) | column_values(columns)
        shape = (move.name, *values, *columns)
        values[DELAY] = span(delay)
        if not (patient or self.returns or self.has_one_writer):
            return self._move_free(move, held, delay, columns)
        lender = self.connections
        if lender is not None and self.takes_text:
            text = once(self._texts, shape, lambda: TextStatement(build(), lender.dialect))
            if text.is_plain:

                def work() -> int:
                    with storable():
                        changed = lender.lend(lambda driver: text.changed(driver, values))
                    if patient:
                        self._must_be_all(changed, held, self.rows)
                    return changed

                return steadily_told(work, lender.dialect)
        statement = once(self.queue.kept, (*shape, self.returns), build)
        return self.change(held, statement, values, patient=patient)

    def _move_free(
        self, move: Move, held: Sequence[Held], delay: timedelta, columns: Mapping[Column[Any], Any]
    ) -> Told[int]:
        """As `move`, of rows that nobody else has locked, where one statement cannot pass over the others."""

        def work(connection: Connection) -> int:
            free = _held_of(connection.execute(self.passing_over(self._still(held))))
            if not free:
                return 0
            moving = statements.moved(self.queue, move, delay, values=columns)
            return connection.execute(moving.where(statements.owned(self.queue, free))).rowcount

        return self.ask(work, whole=True)

    def still(self, held: Sequence[Held], move: Move) -> list[Held]:
        """Those of these leases by which this move was made: the row has the token still, and that status."""
        queue = self.queue
        arrived = queue.columns["status"] == queue.statuses.value(move.target)
        found = self.rows(
            statements.states(queue, queue.columns["lease_token"]).where(
                statements.owned(queue, held), arrived
            )
        )
        return _held_of(found)

    def extend(self, held: Sequence[Held], lifetime: timedelta) -> dict[Held, int]:
        """Set the end of each lease that is still theirs; the new ends in microseconds by the database's clock.

        A row that somebody else's transaction has locked holds up no other: when all others are extended, it is a
        `BackendError`.
        """
        queue, column = self.queue, self.queue.columns
        token, values = column["lease_token"], held_values(held)

        def looking() -> Select[Any]:
            return statements.states(queue, token, column["retry_at"]).where(self.leased(held))

        look = once(queue.kept, ("look", *values), looking)

        def work(connection: Connection) -> tuple[list[Any], list[Held]]:
            locked = once(queue.kept, ("lock", *values), lambda: self.passing_over(looking()))
            rows: list[Any] = [*connection.execute(locked, values)]
            free = _held_of(row[:-1] for row in rows)
            if free:
                extended = ("extend", *held_values(free))
                move = once(queue.kept, extended, lambda: statements.extended(queue, free))
                connection.execute(move, held_values(free) | {DELAY: span(lifetime)})
            return [*connection.execute(look, values)], free

        found, free = self.run(work, whole=True)
        if len(found) > len(free):
            raise BackendError(_LOCKED)
        return {(tuple(pk), number): microseconds(until) for *pk, number, until in found}

    def still_leased(self, held: Sequence[Held]) -> list[Held]:
        """Those whose rows are still their workers'."""
        return _held_of(self.rows(self._still(held)))

    def _still(self, held: Sequence[Held]) -> Select[Any]:
        return statements.states(self.queue, self.queue.columns["lease_token"]).where(self.leased(held))

    def fence(self, held: Sequence[Held]) -> Any:
        """SQL for the rows of these leases, for what changes them.

        PostgreSQL waits without end for a row that another transaction has written; others give up after a while.
        """
        return self.unlocked(self.leased(held), one=len(held) == 1)

    def unlocked(self, condition: ColumnElement[bool], *, one: bool) -> Any:
        """The condition; in PostgreSQL, of rows that nobody has locked. `one`: it is true of one row at most."""
        if not self.returns:
            return condition
        found = self.passing_over(statements.states(self.queue).where(condition))
        pk: Any = self.queue.pk[0] if len(self.queue.pk) == 1 else tuple_(*self.queue.pk)
        return pk == found.scalar_subquery() if one else pk.in_(found)  # which costs a join

    def passing_over(self, looking: Select[Any]) -> Select[Any]:
        """Lock the rows, but those that somebody else has locked."""
        return looking.with_for_update(skip_locked=True, key_share=True, of=self.queue.table)

    def leased(self, held: Sequence[Held]) -> Any:
        """SQL for the rows of these leases; a strict queue's must not be over."""
        return statements.leased(self.queue, held, strictly=self.queue.options.strict)

    # What keeps leases alive takes this for a backend: names of rows, and tokens as text.

    def extend_many(self, held: Sequence[tuple[RowName, str]], lifetime: timedelta) -> Any:
        """The new end of each lease that is still theirs, by name; of an asyncio driver, to be awaited."""
        if self.asynchronous:
            return self.spawned(self._extend_many, held, lifetime)
        return self._extend_many(held, lifetime)

    def _extend_many(self, held: Sequence[tuple[RowName, str]], lifetime: timedelta) -> dict[str, int]:
        names = {(name.pk, int(token)): name for name, token in held}
        return {names[one]: until for one, until in self.extend([*names], lifetime).items() if one in names}

    def release(self, name: RowName, token: str) -> Any:  # noqa: ARG002
        """Nothing: a row that was finished is not extended any more, for it is not running."""
        return _nothing() if self.asynchronous else None


def _held_of(rows: Iterable[Any]) -> list[Held]:
    return [(tuple(row[:-1]), row[-1]) for row in rows]


async def _nothing() -> None:
    return None
