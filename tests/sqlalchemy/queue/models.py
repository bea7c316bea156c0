"""Queues of several kinds, for the tests in this folder."""

from __future__ import annotations

from itertools import count
from uuid import UUID

from sqlalchemy import JSON, ForeignKey, ForeignKeyConstraint, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from reservable import Backoff, Queued, QueueOptions, Reservable


class Base(DeclarativeBase):
    pass


class Task(Queued, Base):
    """Two attempts, and nothing that happens within an hour by itself."""

    __tablename__ = "tasks"
    __queue__ = QueueOptions(lease="1 hour", max_attempts=2, backoff=Backoff(base="1 hour", jitter=0))
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str | None] = mapped_column(String(100))


class StrictTask(Queued, Base):
    __tablename__ = "strict_tasks"
    __queue__ = QueueOptions(
        lease="1 hour", max_attempts=2, backoff=Backoff(base="1 hour", jitter=0), strict=True
    )
    id: Mapped[int] = mapped_column(primary_key=True)


class Short(Queued, Base):
    """A lease that runs out while a test waits for it."""

    __tablename__ = "shorts"
    __queue__ = QueueOptions(lease=0.5, max_attempts=3, backoff=Backoff(base=0, jitter=0))
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str | None] = mapped_column(String(100))


class Kept(Queued, Base):
    """A lease that a test can outlast, and whose renewals a busy machine does not miss."""

    __tablename__ = "kept"
    __queue__ = QueueOptions(lease=2, max_attempts=3, backoff=Backoff(base=0, jitter=0))
    id: Mapped[int] = mapped_column(primary_key=True)


class Endless(Queued, Base):
    """Tried again however often its workers die."""

    __tablename__ = "endless"
    __queue__ = QueueOptions(lease=1, max_attempts=None)
    id: Mapped[int] = mapped_column(primary_key=True)


class Code(Queued, Base):
    """Statuses that are numbers, one of the user's own, and no pause."""

    __tablename__ = "codes"
    __queue__ = QueueOptions(
        statuses={
            "pending": 10,
            "running": 20,
            "succeeded": 30,
            "failed": 40,
            "cancelled": 50,
            "paused": None,
        },
        extra=(99,),
    )
    id: Mapped[int] = mapped_column(primary_key=True)


class Stage(Queued, Base):
    __tablename__ = "stages"
    __queue__ = QueueOptions(
        max_attempts=2, backoff=Backoff(base=0, jitter=0), steps=("download", "transcribe")
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    path: Mapped[str | None] = mapped_column(String(100))


class Seat(Queued, Base):
    """A primary key of two parts."""

    __tablename__ = "queued_seats"
    hall: Mapped[str] = mapped_column(String(20), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class Stamped(Queued, Base):
    """A column that brings a value of its own at every UPDATE, and one whose type changes the value."""

    __tablename__ = "stamped"
    id: Mapped[int] = mapped_column(primary_key=True)
    changed: Mapped[int] = mapped_column(default=0, onupdate=count(1).__next__)
    found: Mapped[list[int] | None] = mapped_column(JSON)


class Owner(Base):
    __tablename__ = "owners"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str | None] = mapped_column(String(100))


class Document(Reservable, Queued, Base):
    """Both mixins, a relation that is loaded along, and subclasses that share the table."""

    __tablename__ = "documents"
    __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "document"}  # noqa: RUF012
    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("owners.id"))
    owner: Mapped[Owner | None] = relationship(lazy="joined")


class Remark(Base):
    """A row that points at one of the queue."""

    __tablename__ = "remarks"
    id: Mapped[int] = mapped_column(primary_key=True)
    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id"))


class Letter(Document):
    __mapper_args__ = {"polymorphic_identity": "letter"}  # noqa: RUF012


class Book(Document):
    """A subclass with a table of its own beside."""

    __tablename__ = "books"
    __mapper_args__ = {"polymorphic_identity": "book"}  # noqa: RUF012
    id: Mapped[int] = mapped_column(ForeignKey("documents.id"), primary_key=True)
    pages: Mapped[int | None]


class Renumbered(Queued, Base):
    """Whose mapper knows another primary key than its table."""

    __tablename__ = "renumbered"
    id: Mapped[int] = mapped_column(primary_key=True)
    code: Mapped[int] = mapped_column(unique=True)
    __mapper_args__ = {"primary_key": [code]}  # noqa: RUF012


class Pair(Queued, Base):
    """A key of two parts, which a subclass has in another order and by other names."""

    __tablename__ = "pairs"
    __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "pair"}  # noqa: RUF012
    a: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    b: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(20))


class Twist(Pair):
    __tablename__ = "twists"
    __table_args__ = (ForeignKeyConstraint(["one", "other"], ["pairs.a", "pairs.b"]),)
    __mapper_args__ = {"polymorphic_identity": "twist"}  # noqa: RUF012
    other: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    one: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class Marked(Queued, Base):
    __tablename__ = "marked"
    id: Mapped[UUID] = mapped_column(primary_key=True)
