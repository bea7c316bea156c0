"""The queue that a good programmer writes by hand: a reservation table, an anti-join and the ORM.

A row's reservation is taken in one transaction with the look for the row: FOR UPDATE SKIP LOCKED keeps workers
apart, the primary key of the reservation table decides, and an expired reservation is taken over. The work is
committed first, the reservation given back after it.
"""

from __future__ import annotations

import time
from secrets import token_hex
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Engine,
    String,
    and_,
    case,
    delete,
    exists,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.orm import Mapped, Session, mapped_column

from benchmarks.models import KEY, Base, Video

SECONDS = 6 * 3600

NOW = {
    "postgresql": "CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000000 AS BIGINT)",
    "mariadb": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
}
"""The server's clock in microseconds since the epoch."""


class Taken(Base):
    """One row a reservation."""

    __tablename__ = "taken"

    video_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    purpose: Mapped[str] = mapped_column(String(50), primary_key=True)
    token: Mapped[str] = mapped_column(String(32))
    until: Mapped[int] = mapped_column(BigInteger)


class Queue:
    """Takes and gives back rows of one database."""

    def __init__(self, engine: Engine) -> None:
        self.kind = engine.dialect.name
        now: ColumnElement[int] = literal_column(NOW.get(self.kind, NOW["mariadb"]), BigInteger)
        self._now = now
        taken = exists().where(Taken.video_id == Video.id, Taken.purpose == KEY, Taken.until > now)
        self._free = select(Video).where(Video.path.is_(None), ~taken).order_by(Video.id).limit(1)
        if self.kind != "sqlite":
            self._free = self._free.with_for_update(
                skip_locked=True, of=Video if self.kind == "postgresql" else None
            )

    def take(self, session: Session) -> tuple[Video, str] | None:
        """The next free row and the token of its reservation, committed; None when there is none."""
        while True:
            if self.kind == "sqlite":
                session.execute(text("BEGIN IMMEDIATE"))  # the look and the insert are one transaction
            video = session.scalars(self._free).first()
            if video is None:
                session.rollback()
                return None
            token = token_hex(16)
            granted = self._insert(session, video.id, token)
            session.commit()
            if granted:
                return video, token
            # Somebody reserved it between the look and the lock: look again.

    def _insert(self, session: Session, video_id: int, token: str) -> bool:
        values = {
            "video_id": video_id,
            "purpose": KEY,
            "token": token,
            "until": self._now + SECONDS * 1_000_000,
        }
        make: Any = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}.get(self.kind, mysql.insert)
        statement = make(Taken).values(values)
        if self.kind in ("mysql", "mariadb"):
            over, new = Taken.until <= self._now, statement.inserted
            changes = [
                (name, case((over, new[name]), else_=Taken.__table__.c[name])) for name in ("token", "until")
            ]
            statement = statement.on_duplicate_key_update(changes)
        else:
            new = statement.excluded
            statement = statement.on_conflict_do_update(
                index_elements=["video_id", "purpose"],
                set_={"token": new.token, "until": new.until},
                where=Taken.until <= self._now,
            )
        return session.execute(statement.returning(Taken.token)).scalar() == token

    def give_back(self, session: Session, video_id: int, token: str) -> None:
        """End the reservation if it is still ours."""
        mine = and_(Taken.video_id == video_id, Taken.purpose == KEY, Taken.token == token)
        session.execute(delete(Taken).where(mine).execution_options(synchronize_session=False))
        session.commit()


class RedisQueue:
    """The same with Redis: candidates in the table's order, SET NX on each, and a second look at the row."""

    RELEASE = (
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
    )
    BATCH = 50

    def __init__(self, client: Any) -> None:
        self._client = client
        self._release = client.register_script(self.RELEASE)

    def take(self, session: Session) -> tuple[Video, str] | None:
        """The next free row and its token; None when every candidate is taken or done."""
        token, after = token_hex(16), 0
        while True:
            candidates = select(Video.id).where(Video.path.is_(None), Video.id > after).order_by(Video.id)
            numbers = session.scalars(candidates.limit(self.BATCH)).all()
            session.rollback()
            if not numbers:
                return None
            for number in numbers:
                if self._client.set(f"by-hand:{number}", token, nx=True, px=SECONDS * 1000):
                    video = session.get(Video, number)
                    if video is not None and video.path is None:
                        return video, token
                    session.rollback()
                    self._release([f"by-hand:{number}"], [token])
            after = numbers[-1]

    def give_back(self, _session: Session, video_id: int, token: str) -> None:
        """End the reservation if it is still ours."""
        self._release([f"by-hand:{video_id}"], [token])


def drain(engine: Engine, client: Any) -> int:
    """Work on rows until none is free; how many."""
    queue: Queue | RedisQueue = RedisQueue(client) if client is not None else Queue(engine)
    worked = 0
    with Session(engine, expire_on_commit=False) as session:
        while (found := queue.take(session)) is not None:
            video, token = found
            number = video.id
            video.path = f"/films/{number}"
            video.size = time.time_ns() % 1_000_000
            video.times = Video.times + 1
            session.commit()
            queue.give_back(session, number, token)
            worked += 1
    return worked
