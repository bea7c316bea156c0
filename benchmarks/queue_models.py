"""The table that is the queue in these measurements, and how it is filled."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Engine,
    Integer,
    String,
    case,
    insert,
    literal,
    make_url,
    null,
    select,
    text,
    type_coerce,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from benchmarks.models import analyze
from reservable import Queued
from reservable.backends.database.clock import clock

HOUR = 3600 * 1_000_000
"""Microseconds, as due times are stored."""


class Base(DeclarativeBase):
    pass


class Video(Queued, Base):
    """What is to be done, with the options that a queue has by default."""

    __tablename__ = "videos"

    id: Mapped[int] = mapped_column(primary_key=True)
    url: Mapped[str] = mapped_column(String(200))
    title: Mapped[str] = mapped_column(String(200))
    path: Mapped[str | None] = mapped_column(String(200))


def plain(url: str) -> str:
    """The same address for a driver that is used without SQLAlchemy."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def add(engine: Engine, numbers: range, *, due: int = 100, waiting: int = 0, levels: int = 1) -> None:
    """Add rows with these numbers by one statement.

    Of every hundred, `due` are due, so many are `waiting` to be so, and the others have succeeded; the numbers of
    each kind are spread over the table. They have priorities from 0, so many `levels`.
    """
    Base.metadata.create_all(engine)
    number = select(literal(numbers.start, Integer).label("number")).cte("numbers", recursive=True)
    number = number.union_all(select(number.c.number + 1).where(number.c.number < numbers.stop - 1))
    one = number.c.number
    share = one * 37 % 100
    at: Any = clock() - HOUR + one
    values = {
        "id": one,
        "url": literal("http://example.org/video.mp4"),
        "title": literal("A video"),
        "status": case((share < due + waiting, "pending"), else_="succeeded"),
        "priority": one % literal(levels, Integer),
        "retry_at": case((share < due, at), (share < due + waiting, at + 2 * HOUR), else_=null()),
        "finished_at": case((share < due + waiting, null()), else_=at),
    }
    columns = Video.__table__.c
    rows = select(*(type_coerce(value, columns[name].type) for name, value in values.items()))
    with engine.begin() as connection:
        if engine.dialect.name in ("mysql", "mariadb"):
            connection.execute(text(f"SET max_recursive_iterations = {len(numbers) + 1}"))
        connection.execute(insert(Video).from_select(list(values), rows))
    tidy(engine)


def tidy(engine: Engine) -> None:
    """Have the database remove dead rows, and let its planner know what the table holds by now."""
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
    else:
        analyze(engine)
