"""How the queue's own statements come to the database: in short transactions, beside whatever the caller has open."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Executable
from sqlalchemy.engine import Dialect

from reservable.backends.database.connections import pause
from reservable.backends.database.dialects import kind
from reservable.backends.database.failures import core_errors
from reservable.backends.database.lending import Lender
from reservable.backends.database.repeating import Told, steadily_told
from reservable.errors import BackendError
from reservable.leasing.parameters import Values

T = TypeVar("T")


class Words(NamedTuple):
    """What begins a transaction and ends it."""

    begin: str
    commit: str = "COMMIT"
    roll_back: str = "ROLLBACK"


# Our rows are locked one way everywhere, whatever level a server's sessions begin with; SQLite's writers wait for
# each other at the beginning, for one that has read first cannot wait any more.
BEGIN = {
    "postgresql": Words("BEGIN ISOLATION LEVEL READ COMMITTED"),
    "mysql": Words("BEGIN"),
    "mariadb": Words("BEGIN"),
    "sqlite": Words("BEGIN IMMEDIATE"),
}


@contextmanager
def storable() -> Iterator[None]:
    """Raises `BackendError` for a value that a driver cannot send, and has not sent."""
    try:
        yield
    except (UnicodeError, OverflowError) as error:
        raise BackendError(f"the database cannot store a value: {error}") from error


class Asking(ABC):
    """One database, for blocking code.

    Its calls are repeated after a deadlock or a broken connection, and raise `BackendError`.
    """

    in_memory: bool
    """Whether the database is this process's own, and no second connection leads to it."""
    connections: Lender | None
    """Those beside the caller's; None where there can be none."""
    takes_text = True
    """Whether they take statements as text, too."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.kind = kind(dialect)
        self.asynchronous = dialect.is_async
        """Whether its calls need SQLAlchemy's greenlets."""

    @property
    def returns(self) -> bool:
        """Whether an UPDATE that locks as it goes can return what it changed."""
        return self.kind == "postgresql"

    @property
    def has_one_writer(self) -> bool:
        """Whether a transaction that locks anything locks everything."""
        return self.kind == "sqlite"

    def run(self, work: Callable[[Connection], T], *, whole: bool = False) -> T:
        """What the work returns; `whole`: done in one transaction, else each statement by itself."""
        return self.ask(work, whole=whole).answer

    def rows(self, statement: Executable, values: Values | None = None) -> Sequence[Any]:
        """The rows of a query."""
        return self.run(lambda connection: connection.execute(statement, values).all())

    def ask(
        self, work: Callable[[Connection], T], *, whole: bool = False, repeatable: bool = True
    ) -> Told[T]:
        """As `run`, and whether it had to be asked again; what is not `repeatable` is not, when a reply was lost."""

        def once() -> T:
            with storable():
                return self.once(work, whole=whole)

        return steadily_told(once, self.dialect, repeatable=repeatable)

    @abstractmethod
    def once(self, work: Callable[[Connection], T], *, whole: bool) -> T:
        """One try. Raises `BackendError`, or a signal where asking again can help."""

    def pause(self, seconds: float) -> None:
        """Do nothing for a while."""
        pause(self.dialect, seconds)

    def in_words(self, connection: Connection, work: Callable[[Connection], T], words: Words) -> T:
        """What the work returns, done in one transaction on a connection in autocommit."""
        connection.exec_driver_sql(words.begin)
        try:
            answer = work(connection)
            connection.exec_driver_sql(words.commit)
        except BaseException as error:
            self._roll_back(connection, error, words)
            raise
        return answer

    def _roll_back(self, connection: Connection, error: BaseException, words: Words) -> None:
        if isinstance(error, Exception):
            with suppress(*core_errors(self.dialect)):
                connection.exec_driver_sql(words.roll_back)
                return
        connection.invalidate()  # in the middle of an answer, or out of reach: it ends with its connection
