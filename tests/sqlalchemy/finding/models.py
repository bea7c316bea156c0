"""The tables that the finding tests find rows in: videos with everything that may hang on one, and odd keys."""

from __future__ import annotations

import dataclasses
import datetime as dt
import uuid
from typing import Any

from sqlalchemy import JSON, Column, Date, ForeignKey, String, Table, Text, Uuid, func
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.hybrid import hybrid_property
from sqlalchemy.ext.mutable import MutableDict
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    attribute_keyed_dict,
    column_property,
    composite,
    mapped_column,
    query_expression,
    relationship,
)
from sqlalchemy.types import TypeDecorator

from reservable import Reservable


class Base(DeclarativeBase):
    pass


video_tags = Table(
    "video_tags",
    Base.metadata,
    Column("video_id", ForeignKey("videos.id"), primary_key=True),
    Column("tag_id", ForeignKey("tags.id"), primary_key=True),
)


class Country(Base):
    __tablename__ = "countries"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(50))


class Author(Base):
    __tablename__ = "authors"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(50))
    country_id: Mapped[int | None] = mapped_column(ForeignKey("countries.id"))
    country: Mapped[Country | None] = relationship()
    videos: Mapped[list[Video]] = relationship(back_populates="author")


class Tag(Base):
    __tablename__ = "tags"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(50))


class Comment(Base):
    __tablename__ = "comments"

    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(String(50))
    video_id: Mapped[int] = mapped_column(ForeignKey("videos.id"), index=True)
    video: Mapped[Video] = relationship(back_populates="comments")


class Chapter(Base):
    __tablename__ = "chapters"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(50))
    video_id: Mapped[int] = mapped_column(ForeignKey("videos.id"), index=True)


@dataclasses.dataclass
class Size:
    width: int | None
    height: int | None


class Video(Reservable, Base):
    __tablename__ = "videos"

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(50), default="")
    path: Mapped[str | None] = mapped_column(String(50))
    rank: Mapped[int | None]
    notes: Mapped[str | None] = mapped_column(Text, deferred=True)
    meta: Mapped[dict[str, Any] | None] = mapped_column(MutableDict.as_mutable(JSON))
    width: Mapped[int | None]
    height: Mapped[int | None]
    author_id: Mapped[int | None] = mapped_column(ForeignKey("authors.id"), index=True)
    original_id: Mapped[int | None] = mapped_column(ForeignKey("videos.id"), index=True)

    size: Mapped[Size] = composite("width", "height")
    shout: Mapped[str] = column_property(func.upper(title))
    score: Mapped[int | None] = query_expression()

    author: Mapped[Author | None] = relationship(back_populates="videos")
    original: Mapped[Video | None] = relationship(remote_side="Video.id", back_populates="copies")
    copies: Mapped[list[Video]] = relationship(back_populates="original")
    tags: Mapped[set[Tag]] = relationship(secondary=video_tags)
    comments: Mapped[list[Comment]] = relationship(back_populates="video", order_by="Comment.id")
    chapters: Mapped[dict[str, Chapter]] = relationship(collection_class=attribute_keyed_dict("name"))

    @hybrid_property
    def waiting(self) -> bool:
        return self.path is None

    @waiting.inplace.expression
    @classmethod
    def _waiting(cls) -> Any:
        return cls.path.is_(None)


class Review(Reservable, Base):
    """Loads its author in the same statement, by its mapping."""

    __tablename__ = "reviews"

    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(String(50))
    author_id: Mapped[int | None] = mapped_column(ForeignKey("authors.id"), index=True)
    author: Mapped[Author | None] = relationship(lazy="joined")


class Page(Reservable, Base):
    """Its key is text."""

    __tablename__ = "pages"

    url: Mapped[str] = mapped_column(String(80), primary_key=True)
    path: Mapped[str | None] = mapped_column(String(50))


class File(Reservable, Base):
    """Its key is a UUID."""

    __tablename__ = "files"

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=uuid.uuid4)
    path: Mapped[str | None] = mapped_column(String(50))


class TextualFile(Reservable, Base):
    """Its key is a UUID that Python sees as text."""

    __tablename__ = "textual_files"

    id: Mapped[str] = mapped_column(Uuid(as_uuid=False), primary_key=True)
    path: Mapped[str | None] = mapped_column(String(50))


class Seat(Reservable, Base):
    """Its key has two parts."""

    __tablename__ = "seats"

    row: Mapped[str] = mapped_column(String(20), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    guest: Mapped[str | None] = mapped_column(String(50))


class Code(TypeDecorator[int]):
    """A number in Python, text with a letter in front in the database."""

    impl = String(20)
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> str | None:
        return None if value is None else f"C{value:04}"

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:
        return None if value is None else int(value[1:])


class Product(Reservable, Base):
    """Its key is of a type of the user's own."""

    __tablename__ = "products"

    code: Mapped[int] = mapped_column(Code(), primary_key=True)
    path: Mapped[str | None] = mapped_column(String(50))


class Shelf(Reservable, Base):
    """Its key has two parts, one of a type of the user's own."""

    __tablename__ = "shelves"

    hall: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    code: Mapped[int] = mapped_column(Code(), primary_key=True)


class Day(Reservable, Base):
    """Its key is a date."""

    __tablename__ = "days"

    date: Mapped[dt.date] = mapped_column(Date, primary_key=True)
    path: Mapped[str | None] = mapped_column(String(50))


class Task(Reservable, Base):
    """The base of a hierarchy with a table for each class (joined)."""

    __tablename__ = "tasks"
    __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "task"}  # noqa: RUF012 - SQLAlchemy's own way

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    due: Mapped[int] = mapped_column(default=0)


class Render(Task):
    __tablename__ = "renders"
    __mapper_args__ = {"polymorphic_identity": "render"}  # noqa: RUF012 - as above

    id: Mapped[int] = mapped_column(ForeignKey("tasks.id"), primary_key=True)
    codec: Mapped[str | None] = mapped_column(String(20))


class Animal(Reservable, Base):
    """The base of a hierarchy in one table."""

    __tablename__ = "animals"
    __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "animal"}  # noqa: RUF012 - as above

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))


class Cat(Animal):
    __mapper_args__ = {"polymorphic_identity": "cat"}  # noqa: RUF012 - as above
