"""A database with the models' tables, a place for reservations, and the hands to work with both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from sqlalchemy import Connection, Engine, StaticPool, create_engine, event, inspect, select, text
from sqlalchemy.orm import Session

from reservable import Backend, take_reserved
from reservable.backends.database.execution import TextStatement
from reservable.sqlalchemy import homes
from tests.sqlalchemy.finding.models import Base, Video
from tests.sqlalchemy.finding.samples import Sample
from tests.stores import DATABASES

EVERYWHERE = ["memory", "redis+sqlite", "redis+postgresql", *DATABASES]
"""Where rows and reservations may live: both in one database, or the reservations in Redis."""

SERVERS = [kind for kind in EVERYWHERE if kind not in ("memory", "sqlite", "redis+sqlite")]
"""As above, where a reader never blocks a writer and a row can be locked."""

SHARED = [kind for kind in EVERYWHERE if kind != "memory"]
"""As above, where a second connection sees the same rows."""

KEY = "download"


@dataclass
class World:
    """One place, for one test."""

    kind: str
    engine: Engine
    stack: ExitStack = field(default_factory=ExitStack)

    @property
    def database(self) -> str:
        """The kind of database that the rows are in."""
        return "sqlite" if self.kind == "memory" else self.kind.removeprefix("redis+")

    @property
    def beside(self) -> bool:
        """Whether the reservations are in the same database as the rows."""
        return self.kind in DATABASES

    @property
    def backend(self) -> Backend:
        """Where the reservations are."""
        with Session(self.engine) as session:
            return homes.backend_on(homes.store_of(inspect(Video), session), Video, session)

    def session(self, bind: Any = None, **options: Any) -> Session:
        """A session, closed at the end of the test."""
        session = Session(bind if bind is not None else self.engine, **options)
        self.stack.callback(session.close)
        return session

    def connect(self, **options: Any) -> Connection:
        """A connection, closed at the end of the test."""
        return self.stack.enter_context(self.engine.execution_options(**options).connect())

    def add(self, *rows: Any) -> None:
        """Commit new rows."""
        with Session(self.engine) as session:
            session.add_all(rows)
            session.commit()

    def add_videos(self, count: int, **values: Any) -> None:
        """Commit that many videos, with the ids 1, 2, 3 …"""
        if not count:
            return
        rows = [{"id": number, "title": f"video {number}", **values} for number in range(1, count + 1)]
        with self.engine.begin() as connection:
            connection.execute(Video.__table__.insert(), rows)  # type: ignore[attr-defined]

    def run(self, statement: str) -> None:
        """Run and commit SQL from a connection of its own (in memory: from the only one)."""
        with self.engine.begin() as connection:
            connection.execute(text(statement))

    def reserve(self, *ids: Any, model: type[Any] = Video, key: Any = KEY) -> None:
        """Reserve rows as somebody else, who is gone before the test goes on."""
        with Session(self.engine) as session:
            for one in ids:
                assert session.get_one(model, one).reserve(key, "1 hour")

    def reserve_many(self, ids: range) -> None:
        """Reserve many videos as somebody else."""
        with Session(self.engine) as session:
            these = select(Video).where(Video.id.between(ids.start, ids.stop - 1))
            assert len(take_reserved(session, these, KEY, "1 hour", limit=len(ids))) == len(ids)

    def reserved(self, model: type[Any] = Video, key: Any = KEY) -> list[Any]:
        """The primary keys of the rows that are reserved now, in their order."""
        with Session(self.engine) as session:
            rows = session.query(model).order_by(*inspect(model).primary_key).all()
            keys = [inspect(row).identity for row in rows if row.is_reserved(key)]
            return [one[0] if len(one) == 1 else one for one in keys]


def open_engine(kind: str, url: str) -> Engine:
    """An engine with the models' tables in it."""
    if kind == "memory":
        engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    else:
        engine = create_engine(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", without_the_disk)
    assert Sample.metadata is Base.metadata  # mapped in a module of its own, created with the others
    Base.metadata.create_all(engine)
    return engine


def without_the_disk(driver: Any, _: object) -> None:
    """Wait for the disk as little as the tests' servers do."""
    driver.execute("PRAGMA synchronous = OFF")


@contextmanager
def emptied(engine: Engine) -> Iterator[None]:
    """Delete, at the end, the rows of every table that had some added meanwhile."""
    filled: set[str] = set()

    def note(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if added := re.match(r"INSERT INTO (\w+)", statement):
            filled.add(added[1])

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    with engine.begin() as connection:
        if "videos" in filled:
            connection.execute(text("UPDATE videos SET original_id = NULL WHERE original_id IS NOT NULL"))
        for table in reversed(Base.metadata.sorted_tables):
            if table.name in filled:
                connection.execute(table.delete())
        if inspect(connection).has_table("reservations"):  # written to in ways that tell no listener
            connection.execute(text("DELETE FROM reservations"))


def close_own_connections(engine: Engine) -> None:
    """Close what the library keeps beside an engine, and forget it: a test after this one may configure anew."""
    kept = homes._kept(engine)
    for known in kept.values():
        store = known[1] if isinstance(known, tuple) else known
        store.close()
    kept.clear()


@contextmanager
def before_statement(pattern: str, action: Callable[[], Any], times: int = 1) -> Iterator[list[str]]:
    """Do something before the next statement that matches is sent, by whatever connection; yields those seen."""
    seen: list[str] = []
    busy = False

    def look(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        nonlocal busy
        if not busy and len(seen) < times and re.search(pattern, " ".join(statement.split())):
            seen.append(statement)
            busy = True
            try:
                action()
            finally:
                busy = False

    send_as_text = TextStatement.rows

    def rows(self: TextStatement, driver: Any, values: Any) -> Any:
        look(None, None, self.text)
        return send_as_text(self, driver, values)

    event.listen(Engine, "before_cursor_execute", look)
    try:
        with patch.object(TextStatement, "rows", rows):
            yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", look)


REREAD = r"^SELECT .*videos\.width"
"""The statement that reads a granted row once more; the search asks for keys alone."""


@contextmanager
def statements() -> Iterator[list[tuple[str, int]]]:
    """Every statement sent, by whatever connection, and how many rows it had (-1: the driver cannot tell)."""
    seen: list[tuple[str, int]] = []

    def note(_conn: Any, cursor: Any, statement: str, *_: Any) -> None:
        seen.append((statement, cursor.rowcount))

    sent_as_text = TextStatement.rows

    def rows(self: TextStatement, driver: Any, values: Any) -> Any:
        answer = sent_as_text(self, driver, values)
        seen.append((self.text, len(answer)))
        return answer

    event.listen(Engine, "after_cursor_execute", note)
    try:
        with patch.object(TextStatement, "rows", rows):
            yield seen
    finally:
        event.remove(Engine, "after_cursor_execute", note)


def fresh_engine(world: World, **options: Any) -> Engine:
    """Another engine on the same database."""
    engine = create_engine(world.engine.url, **options)
    world.stack.callback(engine.dispose)
    world.stack.callback(close_own_connections, engine)
    return engine
