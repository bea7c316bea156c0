"""`cron.py` for asyncio, with a lifetime of a minute that is kept alive: a crash frees the row within a minute."""

import asyncio
import os
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from reservable import Reservable, aeach_reserved


class Base(DeclarativeBase):
    pass


class Invoice(Reservable, Base):
    __tablename__ = "invoices"

    id: Mapped[int] = mapped_column(primary_key=True)
    sent_at: Mapped[datetime | None]


unsent = select(Invoice).where(Invoice.sent_at.is_(None)).order_by(Invoice.id)


async def main() -> None:
    engine = create_async_engine(os.environ.get("DATABASE_URL", "sqlite+aiosqlite:///invoices.sqlite"))
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with AsyncSession(engine) as session:
        async for invoice in aeach_reserved(session, unsent, "send", "1 minute"):
            reservation = invoice.areservation("send", "1 minute", renew=True)  # on the grant that we have
            print(f"sending invoice {invoice.id}")  # whatever the work is; if it raises, it runs out soon
            await reservation.check()  # still ours, before what cannot be undone
            invoice.sent_at = datetime.now(UTC).replace(tzinfo=None)
            await session.commit()
            await reservation.release()
    await engine.dispose()


if __name__ == "__main__":
    asyncio.run(main())
