"""Models with every kind of primary key and of inheritance, for the tests in this folder."""

from __future__ import annotations

import enum
from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import CHAR, VARBINARY, ForeignKey, LargeBinary, String, TypeDecorator, Uuid
from sqlalchemy.dialects import mysql
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column

from reservable import Reservable

EXACT = (
    String(100)
    .with_variant(mysql.VARCHAR(100, charset="utf8mb4", collation="utf8mb4_0900_bin"), "mysql")
    .with_variant(mysql.VARCHAR(100, charset="utf8mb4", collation="utf8mb4_nopad_bin"), "mariadb")
)
"""Text that is compared by its bytes, so that "ab", "AB" and "ab " are three rows everywhere."""


class Base(DeclarativeBase):
    pass


class Video(Reservable, Base):
    __tablename__ = "videos"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str | None] = mapped_column(String(100))


class Doc(Reservable, Base):
    __tablename__ = "docs"
    path: Mapped[str] = mapped_column(EXACT, primary_key=True)


class Account(Reservable, Base):
    __tablename__ = "accounts"
    id: Mapped[UUID] = mapped_column(Uuid(), primary_key=True)


class Parcel(Reservable, Base):
    """A UUID kept as 32 hex digits by every database."""

    __tablename__ = "parcels"
    id: Mapped[UUID] = mapped_column(Uuid(native_uuid=False), primary_key=True)


class Seat(Reservable, Base):
    __tablename__ = "seats"
    hall: Mapped[str] = mapped_column(EXACT, primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class Chunk(Reservable, Base):
    __tablename__ = "chunks"
    digest: Mapped[bytes] = mapped_column(
        LargeBinary(16).with_variant(VARBINARY(16), "mysql", "mariadb"), primary_key=True
    )


class Day(Reservable, Base):
    __tablename__ = "days"
    day: Mapped[date] = mapped_column(primary_key=True)


class Color(enum.Enum):
    RED = "#f00"
    BLUE = "#00f"


class Paint(Reservable, Base):
    __tablename__ = "paints"
    color: Mapped[Color] = mapped_column(primary_key=True)


class Code(Reservable, Base):
    """CHAR, which some servers give back padded with spaces."""

    __tablename__ = "codes"
    code: Mapped[str] = mapped_column(CHAR(8), primary_key=True)


class TicketNumber(TypeDecorator[Any]):
    """`T-7` in Python, 7 in the database; takes both."""

    impl = String(20)
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> Any:
        return str(value).upper().removeprefix("T-")

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        return f"T-{value}"


class Ticket(Reservable, Base):
    __tablename__ = "tickets"
    number: Mapped[str] = mapped_column(TicketNumber(), primary_key=True)


class Film(Reservable, Base):
    """Attribute and column have different names."""

    __tablename__ = "films"
    number: Mapped[int] = mapped_column("film_no", primary_key=True)


class Animal(Reservable, Base):
    """Single-table inheritance."""

    __tablename__ = "animals"
    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(20), default="animal")
    __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "animal"}  # noqa: RUF012


class Dog(Animal):
    __mapper_args__ = {"polymorphic_identity": "dog"}  # noqa: RUF012


class Person(Reservable, Base):
    """Joined-table inheritance."""

    __tablename__ = "people"
    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(20), default="person")
    __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "person"}  # noqa: RUF012


class Engineer(Person):
    __tablename__ = "engineers"
    engineer_id: Mapped[int] = mapped_column(ForeignKey("people.id"), primary_key=True)
    __mapper_args__ = {"polymorphic_identity": "engineer"}  # noqa: RUF012


class Shape(Reservable, Base):
    """Concrete inheritance: each class has rows of its own."""

    __tablename__ = "shapes"
    __reservable_name__ = "figure"
    id: Mapped[int] = mapped_column(primary_key=True)


class Circle(Shape):
    __tablename__ = "circles"
    id: Mapped[int] = mapped_column(primary_key=True)
    __mapper_args__ = {"concrete": True}  # noqa: RUF012


class Point(Reservable, MappedAsDataclass, Base):
    """A dataclass that compares by value, so Python makes it unhashable."""

    __tablename__ = "points"
    id: Mapped[int | None] = mapped_column(primary_key=True, init=False, default=None)
    x: Mapped[int] = mapped_column(default=0)
