"""The table that all measurements work on, and how it is filled."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Engine, Select, String, create_engine, event, insert, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from reservable import Reservable

KEY, HOURS = "download", "+6 hours"
"""What rows are reserved for, and how long."""

CHUNK = 10_000


class Base(DeclarativeBase):
    pass


class Video(Reservable, Base):
    __tablename__ = "videos"

    id: Mapped[int] = mapped_column(primary_key=True)
    url: Mapped[str] = mapped_column(String(200))
    title: Mapped[str] = mapped_column(String(200))
    added: Mapped[datetime]
    path: Mapped[str | None] = mapped_column(String(200))
    size: Mapped[int | None]
    times: Mapped[int] = mapped_column(default=0)
    """How often the work was done: more than once is what reservations are there to prevent."""


def waiting() -> Select[Any]:
    """The rows that nobody has worked on yet."""
    return select(Video).where(Video.path.is_(None)).order_by(Video.id)


def engine_for(url: str, **options: Any) -> Engine:
    """An engine; an SQLite file called wal.sqlite is put into WAL mode."""
    engine = create_engine(url, **options)
    if url.endswith("wal.sqlite"):

        @event.listens_for(engine, "connect")
        def _wal(driver: Any, _record: Any) -> None:
            driver.execute("PRAGMA journal_mode=WAL")
            driver.execute("PRAGMA synchronous=NORMAL")

    return engine


def videos(number: int) -> list[Video]:
    """So many new instances, numbered from 1."""
    now = datetime(2026, 1, 1)  # noqa: DTZ001 - the column has no time zone
    return [Video(id=n, url="", title="", added=now) for n in range(1, number + 1)]


def fill(engine: Engine, rows: int) -> None:
    """Make the table and its rows, numbered from 1."""
    Base.metadata.create_all(engine)
    now = datetime(2026, 1, 1)  # noqa: DTZ001 - the column has no time zone
    with engine.begin() as connection:
        for start in range(1, rows + 1, CHUNK):
            numbers = range(start, min(start + CHUNK, rows + 1))
            connection.execute(
                insert(Video),
                [
                    {
                        "id": n,
                        "url": f"http://example.org/{n}.mp4",
                        "title": f"Video {n}",
                        "added": now,
                        "times": 0,
                    }
                    for n in numbers
                ],
            )
    analyze(engine)


def analyze(engine: Engine) -> None:
    """Let the planner know what the tables hold by now."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if engine.dialect.name in ("mysql", "mariadb"):
            for (table,) in connection.execute(text("SHOW TABLES")).all():
                connection.execute(text(f"ANALYZE TABLE {table}")).all()
        else:
            connection.execute(text("ANALYZE"))


def loaded(session: Session, number: int) -> list[Video]:
    """The first so many instances, loaded."""
    return list(session.scalars(select(Video).order_by(Video.id).limit(number)))
