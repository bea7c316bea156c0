"""A table with a column of every common type, for filters of every kind."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from decimal import Decimal

from sqlalchemy import LargeBinary, Numeric, String
from sqlalchemy.orm import Mapped, mapped_column

from reservable import Reservable
from tests.sqlalchemy.finding.models import Base, Code


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


class Sample(Reservable, Base):
    """Has a column of every common type."""

    __tablename__ = "samples"

    id: Mapped[int] = mapped_column(primary_key=True)
    moment: Mapped[dt.datetime | None]
    date: Mapped[dt.date | None]
    time: Mapped[dt.time | None]
    span: Mapped[dt.timedelta | None]
    colour: Mapped[Colour | None]
    flag: Mapped[bool | None]
    ident: Mapped[uuid.UUID | None]
    code: Mapped[int | None] = mapped_column(Code())
    price: Mapped[Decimal | None] = mapped_column(Numeric(10, 2))
    weight: Mapped[float | None]
    blob: Mapped[bytes | None] = mapped_column(LargeBinary(20))
    text: Mapped[str | None] = mapped_column(String(50))
