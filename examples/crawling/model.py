"""The user's own table. One more base class, `Queued`, and the table is the queue."""

from __future__ import annotations

from sqlalchemy import String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from reservable import Backoff, Queued, QueueOptions


class Base(DeclarativeBase):
    pass


class Page(Queued, Base):
    __tablename__ = "pages"
    # Minutes in a crawler of the world; here everybody waits for a dead worker's lease, and for the page that fails.
    __queue__ = QueueOptions(
        lease="3s", max_attempts=3, backoff=Backoff(base="300ms", max="1 minute", jitter=0)
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    url: Mapped[str] = mapped_column(String(200), unique=True)
    title: Mapped[str | None] = mapped_column(String(200))
    sha256: Mapped[str | None] = mapped_column(String(64))
