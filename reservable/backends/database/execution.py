"""Run a statement on a short connection of our own.

Statements are compiled once and sent as text on the driver's cursor, which costs a third of what executing them
through Core does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Executable, Table
from sqlalchemy.engine import Dialect

from reservable.backends.database.dialects import check_version, kind
from reservable.backends.database.lending import Lender
from reservable.backends.database.statements import READ_AFTER, VERBS, Statements
from reservable.backends.database.verbs import Answer, Execute


class TextStatement:
    """A statement compiled to the driver's own text, once for all values."""

    __slots__ = ("_compiled", "_escaped", "_names", "_processors", "_simple", "_whole", "text")

    def __init__(self, statement: Executable, dialect: Dialect) -> None:
        compiled: Any = statement.compile(dialect=dialect)  # type: ignore[attr-defined]
        self._compiled = compiled
        # A list of values makes the text longer: then it is written when the values are known.
        self._whole = not (compiled.post_compile_params or compiled.literal_execute_params)
        self.text = str(compiled)
        self._names = list(compiled.positiontup) if compiled.positional else None
        self._processors = {
            name: process
            for bind, name in compiled.bind_names.items()
            if (process := bind.type.dialect_impl(dialect).bind_processor(dialect)) is not None
        }
        self._escaped = compiled.escaped_bind_names
        self._simple = not self._processors and all(
            bind.value is None and not bind.required and bind.callable is None and bind.key == name
            for bind, name in compiled.bind_names.items()
        )

    @property
    def is_plain(self) -> bool:
        """Whether nothing is left to SQLAlchemy: no value that its type changes, none that a column brings itself."""
        return not self._processors and not self._compiled.update_prefetch

    def send(self, cursor: Any, values: Mapping[str, Any]) -> None:
        """Execute it on a driver's cursor with these values, by the keys of their bind parameters."""
        every: Any
        if self._whole:
            text, names, processors = self.text, self._names, self._processors
            every = values if self._simple else self._compiled.construct_params(values, escape_names=False)
        else:
            state = self._compiled.construct_expanded_state(values, escape_names=False)
            text, names, processors = state.statement, state.positiontup, state.processors
            every = dict(state.parameters)
        for name, process in processors.items():
            every[name] = process(every[name])
        if names is not None:
            cursor.execute(text, [every[name] for name in names])
        elif self._escaped:
            cursor.execute(text, {self._escaped.get(name, name): value for name, value in every.items()})
        else:
            cursor.execute(text, every)

    def rows(self, driver: Any, values: Mapping[str, Any]) -> Sequence[Any]:
        """Send it on a driver's connection and read all rows."""
        cursor = driver.cursor()
        try:
            self.send(cursor, values)
            return cursor.fetchall()  # type: ignore[no-any-return]
        finally:
            cursor.close()

    def changed(self, driver: Any, values: Mapping[str, Any]) -> int:
        """Send it on a driver's connection; how many rows it has changed."""
        cursor = driver.cursor()
        try:
            self.send(cursor, values)
            return int(cursor.rowcount)
        finally:
            cursor.close()


class Execution:
    """Performs `Execute` steps on one table on connections that are lent."""

    def __init__(self, connections: Lender, table: Table, *, notify: bool = False) -> None:
        self.connections = connections
        self.table = table
        self._notify = notify
        self.statements: Statements | None = None
        self._texts: dict[str, TextStatement] = {}

    def prepared(self) -> Statements:
        """The statements for this server, which has to be asked for its version first."""
        if self.statements is None:
            self.connections.lend(lambda _: None)
            dialect = self.connections.dialect
            check_version(dialect)
            statements = Statements(self.table, kind(dialect), notify=self._notify)
            self._texts = {name: TextStatement(getattr(statements, name), dialect) for name in VERBS}
            self.statements = statements
        return self.statements

    def __call__(self, step: Execute) -> Answer:
        """The answer; `Contended` or `LostReply` when asking again can help, else `BackendError`."""
        statements = self.statements or self.prepared()
        return self.connections.lend(lambda driver: self._send(driver, step, statements.dialect))

    def on(self, driver: Any, step: Execute) -> Answer:
        """The answer to a step on a driver's connection that somebody else has lent; raises the driver's errors."""
        return self._send(driver, step, self.prepared().dialect)

    def _send(self, driver: Any, step: Execute, dialect: str) -> Answer:
        cursor = driver.cursor()
        try:
            self._texts[step.statement].send(cursor, step.values)
            if cursor.description is not None:
                return Answer(cursor.fetchall(), -1)
            after = READ_AFTER.get((dialect, step.statement))
            if after is not None:
                return Answer(self._texts[after].rows(driver, step.values), -1)
            return Answer((), cursor.rowcount, cursor.lastrowid if step.statement == "extend" else None)
        finally:
            cursor.close()
