"""The user's own table. One more base class, `Reservable`, and its rows can be reserved."""

from __future__ import annotations

from sqlalchemy import BigInteger, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from reservable import Reservable


class Base(DeclarativeBase):
    pass


class Video(Reservable, Base):
    __tablename__ = "videos"

    id: Mapped[int] = mapped_column(primary_key=True)
    url: Mapped[str] = mapped_column(Text)
    path: Mapped[str | None] = mapped_column(Text)  # None: not downloaded yet
    size: Mapped[int | None] = mapped_column(BigInteger)
    sha256: Mapped[str | None] = mapped_column(String(64))
