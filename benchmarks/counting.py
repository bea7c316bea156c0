"""What a store was asked to do, counted by the server, or by the driver where there is none."""

from __future__ import annotations

import sqlite3
from typing import Any

import redis
from sqlalchemy import URL, Engine, NullPool, create_engine, event, text


class Counts:
    """Statements a row, and round trips a row where they can be told."""

    def __init__(self, statements: float, trips: float | None) -> None:
        self.statements = statements
        self.trips = trips

    def __str__(self) -> str:
        trips = "" if self.trips is None else f", {self.trips:.1f} round trips"
        return f"{self.statements:.1f} statements{trips} a row"


class Counter:
    """Counts nothing: for a server that cannot tell."""

    def start(self) -> None:
        """From now on."""

    def a_row(self, rows: int, traced: int) -> Counts | None:  # noqa: ARG002 - for those that count elsewhere
        """What there was for each row."""
        return None


class ByTrace(Counter):
    """SQLite: the workers have traced their connections; there are no round trips."""

    def a_row(self, rows: int, traced: int) -> Counts | None:
        return Counts(traced / rows, None)


class ByServer(Counter):
    """PostgreSQL by pg_stat_statements, MariaDB by its counters; each statement is a round trip, BEGIN and COMMIT too."""

    def __init__(self, url: URL | str) -> None:
        self._engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        self._postgresql = self._engine.dialect.name == "postgresql"
        self._before = (0, 0)
        if self._postgresql:
            database = self._engine.url.database
            self._all("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            self._all(f"ALTER DATABASE {database} SET pg_stat_statements.track = 'top'")

    def _all(self, statement: str) -> list[Any]:
        with self._engine.connect() as connection:
            result = connection.execute(text(statement))
            return list(result.all()) if result.returns_rows else []

    def start(self) -> None:
        self._before = self._now()

    def a_row(self, rows: int, traced: int) -> Counts | None:  # noqa: ARG002 - nothing is traced here
        statements, trips = (now - before for now, before in zip(self._now(), self._before, strict=True))
        return Counts(statements / rows, trips / rows)

    def _now(self) -> tuple[int, int]:
        if self._postgresql:
            found = self._all(
                "SELECT query, calls FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            work = [calls for query, calls in found if is_work(query)]
            return sum(work), sum(calls for _, calls in found)
        found = self._all("SHOW GLOBAL STATUS LIKE 'Com\\_%'")
        counts = {name.removeprefix("Com_").upper(): int(value) for name, value in found}
        trips = self._all("SHOW GLOBAL STATUS LIKE 'Questions'")
        return sum(counts[word] for word in ("SELECT", "INSERT", "UPDATE", "DELETE")), int(trips[0][1])


class OfRedis(Counter):
    """Redis: commands, those that scripts call included, and requests that were read from clients."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._before = (0, 0)

    def start(self) -> None:
        self._before = self._now()

    def a_row(self, rows: int, traced: int) -> Counts | None:  # noqa: ARG002 - nothing is traced here
        commands, requests = (now - before for now, before in zip(self._now(), self._before, strict=True))
        return Counts(commands / rows, requests / rows)

    def _now(self) -> tuple[int, int]:
        with redis.Redis.from_url(self._url) as client:
            told: Any = client.info("stats")
        return told["total_commands_processed"], told["total_reads_processed"]


def counter(kind: str, url: URL | str) -> Counter:
    """What counts on that kind of store."""
    if kind.startswith("sqlite"):
        return ByTrace()
    if kind == "redis":
        return OfRedis(str(url))
    try:
        return ByServer(url)
    except Exception:  # noqa: BLE001 - a server of the user's own may not have the extension
        return Counter()


def is_work(statement: str) -> bool:
    """Whether it is more than BEGIN, COMMIT or a setting."""
    return statement.lstrip().split(None, 1)[0].upper() in ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


def trace(engine: Engine) -> list[str]:
    """Every statement of every connection of this engine, the library's own included."""
    traced: list[str] = []

    @event.listens_for(engine, "connect")
    def _connect(driver: sqlite3.Connection, _record: Any) -> None:
        driver.set_trace_callback(lambda statement: traced.append(statement) if is_work(statement) else None)

    return traced
