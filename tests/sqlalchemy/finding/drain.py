"""What a worker process of the drain test does: take the next row, work on it, say so, give it back."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

from sqlalchemy import String, create_engine, event, func, select, update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from reservable import Reservable, configure, first_reserved

KEY = "work"


class Base(DeclarativeBase):
    pass


class Item(Reservable, Base):
    __tablename__ = "items"

    id: Mapped[int] = mapped_column(primary_key=True)
    place: Mapped[int] = mapped_column(default=0)
    done: Mapped[int] = mapped_column(default=0)
    text: Mapped[str | None] = mapped_column(String(20))


class Drained(NamedTuple):
    """What one process did: which rows, how long it took, and what it found left when it was told None."""

    ids: list[int]
    seconds: float
    left: list[int]


def drain(number: int, url: str, store: str | None, log: str, ordered: bool) -> Drained:
    """Work on rows until none is left."""
    configure(store)
    engine = create_engine(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", patient)
    waiting = select(Item).where(Item.done == 0).order_by(Item.id if ordered else Item.place)
    ids: list[int] = []
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    began = time.monotonic()
    with Session(engine) as session:
        while (item := first_reserved(session, waiting, KEY, "5 minutes")) is not None:
            os.write(file, f"{item.id}\n".encode())
            ids.append(item.id)
            session.execute(update(Item).where(Item.id == item.id).values(done=Item.done + 1))
            session.commit()
            assert item.release(KEY)
    seconds = time.monotonic() - began
    with Session(engine) as session:
        return Drained(ids, seconds, free_rows(session))


def patient(driver: Any, _: object) -> None:
    """The worker's own commits wait for each other; the disk is waited for as little as by the tests' servers."""
    driver.execute("PRAGMA busy_timeout = 20000")
    driver.execute("PRAGMA synchronous = OFF")


def free_rows(session: Session) -> list[int]:
    """Rows that match and that nobody holds.

    Rows only ever go from free to reserved to done to released, so one that is free now was free all the while,
    and an answer "none" a moment ago was wrong.
    """
    unfinished = list(session.scalars(select(Item).where(Item.done == 0)))
    free = [item.id for item in unfinished if not item.is_reserved(KEY)]
    session.rollback()
    # Done and released between the two questions: that one was reserved when we were told "none".
    return list(session.scalars(select(Item.id).where(Item.id.in_(free), Item.done == 0)))


def fill(url: str, count: int) -> None:
    """Make the table and its rows."""
    engine = create_engine(url)
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all(Item(id=number, place=number * 7919 % count) for number in range(1, count + 1))
        session.commit()
    engine.dispose()


def counts(url: str) -> list[tuple[int, int]]:
    """How often a row was worked on, and how many rows that is so for."""
    engine = create_engine(url)
    with Session(engine) as session:
        rows = session.execute(select(Item.done, func.count()).group_by(Item.done)).all()
    engine.dispose()
    return [(done, count) for done, count in rows]
