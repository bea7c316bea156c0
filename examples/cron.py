"""The whole of a cron job: `* * * * * python cron.py`. Any number of them may run at once."""

import os
from datetime import UTC, datetime

from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from reservable import Reservable, first_reserved


class Base(DeclarativeBase):
    pass


class Invoice(Reservable, Base):
    __tablename__ = "invoices"

    id: Mapped[int] = mapped_column(primary_key=True)
    sent_at: Mapped[datetime | None]


engine = create_engine(os.environ.get("DATABASE_URL", "sqlite:///invoices.sqlite"))
Base.metadata.create_all(engine)
unsent = select(Invoice).where(Invoice.sent_at.is_(None)).order_by(Invoice.id)

with Session(engine) as session:
    while invoice := first_reserved(session, unsent, "send", "+6 hours"):
        print(f"sending invoice {invoice.id}")  # whatever the work is; if it raises, the row stays reserved
        invoice.sent_at = datetime.now(UTC)
        session.commit()
        invoice.release("send")
