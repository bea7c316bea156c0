"""Databases: reserve and release a fresh name, and be refused, beside the same statements on the bare driver."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from secrets import token_hex
from typing import Any

import psycopg
import pymysql
from sqlalchemy import Engine, Executable
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import Session

from benchmarks.figures import Claim, Section, compared
from benchmarks.levels import LEVELS, LIFETIME, OWNER, TAKEN, fresh_names, must, pairs, refusals
from benchmarks.models import engine_for, fill, loaded
from benchmarks.rounds import Contender, interleave
from reservable import configure
from reservable.backends.database import DatabaseBackend

BARE, BARE_REFUSED = "the same statements, bare driver", "the same statement, bare driver"
UPSERT = "a plain upsert, bare driver"
TARGETS = {"postgresql": 0.85, "mariadb": 0.85, "mysql": 0.85, "sqlite": 0.6, "sqlite-journal": 0.6}
LABELS = {
    "postgresql": "PostgreSQL",
    "mariadb": "MariaDB",
    "mysql": "MySQL",
    "sqlite": "SQLite (WAL)",
    "sqlite-journal": "SQLite (rollback journal)",
}

MICROSECONDS = int(LIFETIME.total_seconds() * 1_000_000)

PLAIN_UPSERT = """
INSERT INTO reservations AS r (name, token, owner, fence, since, until)
SELECT %(name)s, %(token)s, %(owner)s, now, now, now + %(lifetime)s
FROM (SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) AS now) AS clock
ON CONFLICT (name) DO UPDATE SET token = excluded.token, owner = excluded.owner,
  fence = greatest(excluded.fence, r.fence + 1), since = excluded.since, until = excluded.until
WHERE r.until <= excluded.since
RETURNING name, token, owner, fence, since, until
"""
"""What one writes who does not look before writing (PostgreSQL)."""


def measure(kind: str, url: str, *, rounds: int, operations: int, disk: bool = False) -> list[Section]:
    """Both comparisons on one database; `disk` says that its commits wait for the disk."""
    engine = engine_for(url)
    backend = configure(engine)
    assert isinstance(backend, DatabaseBackend)
    fill(engine, (rounds + 1) * operations + 1)
    label, target = LABELS[kind], TARGETS[kind]
    with Session(engine) as session:
        instances = loaded(session, (rounds + 1) * operations + 1)
        session.commit()  # no transaction of ours stays open beside what is measured
        session.expire_on_commit = False
        must(backend.holder(TAKEN) is None)  # makes the table where it is not there yet
        bare = Bare(backend, connect(engine))
        contenders = [*pairs(backend, instances[1:]), Contender(BARE, bare.pair)]
        timings = interleave(contenders, rounds=rounds, operations=operations)
        claims = [Claim(level, BARE, target) for level in LEVELS]
        sections = [compared(f"{label}, reserve + release of a fresh name", timings, claims)]

        refused = [*refusals(backend, instances[0]), Contender(BARE_REFUSED, bare.refused)]
        claims = [Claim(level, BARE_REFUSED) for level in LEVELS]
        if kind == "postgresql":
            refused.append(Contender(UPSERT, bare.plain_upsert))
            # What looking first saves is the wait for a write: nothing to be held to where no write waits.
            claims += [Claim(name, UPSERT, 1.0 if disk else None) for name in (*LEVELS, BARE_REFUSED)]
        timings = interleave(refused, rounds=rounds, operations=operations)
        sections.append(compared(f"{label}, a refused try", timings, claims))
        bare.close()
    configure(None)
    engine.dispose()
    return sections


def connect(engine: Engine) -> Any:
    """The driver's own connection to the engine's database, in autocommit."""
    url = engine.url
    if engine.dialect.name == "postgresql":
        return psycopg.connect(
            host=url.host,
            port=url.port or 5432,
            user=url.username,
            password=url.password,
            dbname=url.database,
            autocommit=True,
        )
    if engine.dialect.name == "sqlite":
        connection = sqlite3.connect(str(url.database), isolation_level=None)
        if str(url.database).endswith("wal.sqlite"):
            connection.execute("PRAGMA synchronous=NORMAL")
        return connection
    return pymysql.connect(
        host=url.host,
        port=url.port or 3306,
        user=url.username,
        password=url.password or "",
        database=url.database,
        charset="utf8mb4",
        autocommit=True,
    )


class Statement:
    """The text of one of the library's statements, and its values in the form the driver takes them."""

    def __init__(self, statement: Executable, dialect: Dialect) -> None:
        compiled: Any = statement.compile(dialect=dialect)  # type: ignore[attr-defined]
        self.text = str(compiled)
        constants = {key: value for key, value in compiled.params.items() if value is not None}
        names = list(compiled.positiontup) if compiled.positional else None

        def values(given: dict[str, Any]) -> Any:
            every = {**constants, **given} if constants else given
            return every if names is None else [every[name] for name in names]

        self.values: Callable[[dict[str, Any]], Any] = values


class Bare:
    """The library's two statements, sent by hand: a cursor each, as the drivers' documentation does."""

    def __init__(self, backend: DatabaseBackend, connection: Any) -> None:
        dialect = backend.connections.dialect
        self._acquire = Statement(backend.statements.acquire, dialect)
        self._release = Statement(backend.statements.release, dialect)
        self._standing = Statement(backend.statements.standing, dialect)
        self._mysql = backend.statements.dialect == "mysql"
        self._connection = connection
        self._names = fresh_names("bare")

    def _execute(self, text: str, values: Any) -> list[Any]:
        cursor = self._connection.cursor()
        cursor.execute(text, values)
        rows = cursor.fetchall() if cursor.description is not None else [cursor.rowcount]
        cursor.close()
        return rows

    def _acquired(self, name: str, token: str) -> bool:
        given = {"name": name, "token": token, "owner": OWNER, "lifetime": MICROSECONDS}
        rows = self._execute(self._acquire.text, self._acquire.values(given))
        if self._mysql:
            rows = self._execute(self._standing.text, self._standing.values({"name": name}))
        return bool(rows) and rows[0][1] == token

    def pair(self) -> None:
        """Reserve and release a fresh name."""
        name, token = next(self._names), token_hex(16)
        must(self._acquired(name, token))
        self._execute(self._release.text, self._release.values({"name": name, "token": token}))

    def refused(self) -> None:
        """Try a name that somebody holds."""
        must(not self._acquired(TAKEN, token_hex(16)))

    def plain_upsert(self) -> None:
        """The same without looking first."""
        given = {"name": TAKEN, "token": token_hex(16), "owner": OWNER, "lifetime": MICROSECONDS}
        must(not self._execute(PLAIN_UPSERT, given))

    def close(self) -> None:
        self._connection.close()
